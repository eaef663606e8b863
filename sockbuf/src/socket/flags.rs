//! What a caller says of one call.

use bitflags::bitflags;

bitflags! {
    /// Of one send.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct SendFlags: u8 {
        /// Do not wait.
        #[doc(alias = "MSG_DONTWAIT")]
        const DONTWAIT = 1;
        /// The last byte is urgent; 1024 bytes more are allowed.
        #[doc(alias = "MSG_OOB")]
        const OOB = 2;
        /// A record ends here.
        #[doc(alias = "MSG_EOR")]
        const EOR = 4;
    }
}

bitflags! {
    /// Of one receive.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct ReceiveFlags: u8 {
        /// Do not wait.
        #[doc(alias = "MSG_DONTWAIT")]
        const DONTWAIT = 1;
        /// Leave the bytes where they are.
        #[doc(alias = "MSG_PEEK")]
        const PEEK = 2;
        /// Wait until all that was asked for is there.
        #[doc(alias = "MSG_WAITALL")]
        const WAITALL = 4;
    }
}
