//! Counters of one connection's sending side.

/// One counter for each branch that matters, named as `netstat` prints them on BSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[doc(alias = "tcpstat")]
pub struct Stats {
    /// Packets handed over, of every kind.
    #[doc(alias = "tcps_sndtotal")]
    pub sent: u64,
    /// Packets with new data. Counted before the packet is built, so also when building fails.
    #[doc(alias = "tcps_sndpack")]
    pub data_packets: u64,
    /// Bytes of new data in them.
    #[doc(alias = "tcps_sndbyte")]
    pub data_bytes: u64,
    /// Packets with data sent before.
    #[doc(alias = "tcps_sndrexmitpack")]
    pub rexmit_packets: u64,
    /// Bytes of data in them.
    #[doc(alias = "tcps_sndrexmitbyte")]
    pub rexmit_bytes: u64,
    /// Those of them that filled a hole which the peer reported.
    #[doc(alias = "tcps_sack_rexmits")]
    pub sack_rexmit_packets: u64,
    /// Bytes of data in these.
    #[doc(alias = "tcps_sack_rexmit_bytes")]
    pub sack_rexmit_bytes: u64,
    /// Probes of a closed window.
    #[doc(alias = "tcps_sndprobe")]
    pub probes: u64,
    /// Packets without data that were owed as acknowledgment.
    #[doc(alias = "tcps_sndacks")]
    pub acks: u64,
    /// Packets without data that carry a SYN, FIN or RST.
    #[doc(alias = "tcps_sndctrl")]
    pub control: u64,
    /// Packets without data that tell of urgent data to come.
    #[doc(alias = "tcps_sndurg")]
    pub urgent: u64,
    /// Questions whether the peer is still there.
    #[doc(alias = "tcps_keepprobe")]
    pub keep_probes: u64,
    /// Packets without data that announce a larger window.
    #[doc(alias = "tcps_sndwinup")]
    pub window_updates: u64,
    /// Segments whose round trip was timed.
    #[doc(alias = "tcps_segstimed")]
    pub timed: u64,
    /// Packets that could not be built or that the driver had no buffers for.
    pub no_buffers: u64,
    /// Packets that were built otherwise than the copy policy chose, or shorter, for want of memory.
    pub fallbacks: u64,
    /// Packets whose payload was copied on the policy's word.
    pub copied_packets: u64,
    /// Packets whose payload fitted the header mbuf and was copied for that reason.
    pub inline_packets: u64,
    /// Packets whose payload is referenced.
    pub referenced_packets: u64,
    /// Payload bytes that the CPU copied for the policy or into header mbufs.
    pub copied_bytes: u64,
}
