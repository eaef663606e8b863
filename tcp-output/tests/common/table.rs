//! The table of rows as data: what each gives, what it expects, and our overrides.

use std::collections::BTreeMap;

use mbuf::BufferSet;
use serde::Deserialize;
use serde_json::Value;
use sockbuf::SockBuf;
use tcp_output::options::SackBlock;
use tcp_output::*;

use super::common::{self, pattern, piece};

#[derive(Deserialize, Clone)]
pub struct Given {
    pub state: String,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub snd_max: u32,
    pub snd_up: u32,
    pub snd_last: u32,
    pub snd_wnd: u32,
    pub snd_cwnd: u32,
    pub max_sndwnd: u32,
    pub t_maxopd: u32,
    pub t_maxseg: u32,
    pub v6: bool,
    pub ts_req: bool,
    pub ts_rcvd: bool,
    pub sack: bool,
    pub sack_ok: bool,
    pub no_options: bool,
    pub ws_req: bool,
    pub ws_rcvd: bool,
    pub md5: bool,
    pub ip_options: bool,
    pub numsacks: u8,
    pub holes: Vec<Missing>,
    pub dupacks: u32,
    pub rcv_lastsack: u32,
    pub acknow: bool,
    pub nodelay: bool,
    pub nopush: bool,
    pub fin_sent: bool,
    pub last_idle: bool,
    pub force: bool,
    pub rxtshift: u8,
    pub tso_on: bool,
    pub sosend_in_progress: bool,
    pub snd_sb_cc: usize,
    pub snd_sb_hiwat: usize,
    pub quiet_ms: u64,
    pub rto_ms: u32,
    pub srtt: u32,
    pub rttvar: u32,
    pub rttmin: u32,
    pub rcv_sb_space: u32,
    pub rcv_sb_hiwat: u32,
    pub rcv_adv: u32,
    pub rcv_nxt: u32,
    pub rcv_scale: u8,
    pub rexmt_ms: Option<u32>,
    pub persist_ms: Option<u32>,
    pub delack: bool,
    pub rtt_on: bool,
    pub ecn: bool,
    pub ecn_permit: bool,
    pub send_cwr: bool,
    pub rcvd_ce: bool,
    pub ecn_disable: bool,
    pub snd_sb: Option<Vec<Stored>>,
    pub copy_policy_threshold5: bool,
    pub fail_allocation: Option<String>,
    pub ip_error: Option<String>,
    pub ip_error_at_segment: usize,
}

#[derive(Deserialize, Clone)]
pub struct Stored {
    pub ext: usize,
    pub hdr: bool,
    pub len: usize,
}

#[derive(Deserialize, Clone)]
pub struct Missing {
    pub start: u32,
    pub end: u32,
    pub dups: u32,
    pub rexmit: u32,
}

#[derive(Deserialize, Debug, PartialEq)]
pub struct Expected {
    pub seq: u32,
    pub len: usize,
    pub flags: Vec<String>,
    pub options: Vec<String>,
    pub options_len: usize,
    pub tso_mss: u16,
    pub window_field: u16,
    pub urgent_pointer: u16,
    pub ect: bool,
    pub storage: String,
}

#[derive(Deserialize, Debug, PartialEq)]
pub struct After {
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub snd_max: u32,
    pub snd_cwnd: u32,
    pub rexmt_ms: Option<u32>,
    pub persist_ms: Option<u32>,
    pub rxtshift: u8,
    pub fin_sent: bool,
    pub last_idle: bool,
    pub acknow: bool,
    pub snd_up: u32,
    pub rcv_adv: u32,
    /// Not in the table: no row has it running, but for one of ours.
    #[serde(default)]
    pub delack_ms: Option<u32>,
}

#[derive(Deserialize)]
pub struct Row {
    pub what: String,
    pub given: Given,
    pub segments: Vec<Expected>,
    pub after: After,
    pub counters: BTreeMap<String, u64>,
    pub returns: String,
}

pub fn file(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn merge(into: &mut Value, from: &Value) {
    let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) else {
        panic!("objects")
    };
    into.extend(from.clone());
}

/// The row with the baseline filled in and our overrides applied.
pub fn row(id: &str) -> Row {
    let table = file(include_str!("../data/rows.json"));
    let by_id = |rows: &Value| {
        rows.as_array()
            .expect("array")
            .iter()
            .find(|r| r["id"] == id)
            .cloned()
    };
    let mut row = by_id(&table["rows"]).expect("a row of the table");
    let mut given = table["baseline"].clone();
    merge(&mut given, &row["given"]);
    row["given"] = given;
    if let Some(ours) = by_id(&file(include_str!("../data/overrides.json"))) {
        println!(
            "{id} differs on purpose: {}",
            ours["reason"].as_str().expect("reason")
        );
        for key in ["segments", "counters", "returns"] {
            if !ours[key].is_null() {
                row[key] = ours[key].clone();
            }
        }
        if !ours["after"].is_null() {
            merge(&mut row["after"], &ours["after"]);
        }
    }
    serde_json::from_value(row).expect("a row")
}

pub const NOW: Time = Time(10_000_000);

impl Given {
    fn flags(&self) -> TcbFlags {
        // No row starts with either.
        assert!(!self.delack && !self.rtt_on);
        let bits = [
            (TcbFlags::TIMESTAMPS, self.ts_req && self.ts_rcvd),
            (TcbFlags::SACK, self.sack && self.sack_ok),
            (TcbFlags::SCALE, self.ws_req && self.ws_rcvd),
            (TcbFlags::ASK_TIMESTAMPS, self.ts_req),
            (TcbFlags::ASK_SACK, self.sack),
            (TcbFlags::ASK_SCALE, self.ws_req),
            (TcbFlags::NO_OPTIONS, self.no_options),
            (TcbFlags::SIGNATURE, self.md5),
            (TcbFlags::IP_OPTIONS, self.ip_options),
            (TcbFlags::NODELAY, self.nodelay),
            (TcbFlags::NOPUSH, self.nopush),
            (TcbFlags::ACK_NOW, self.acknow),
            (TcbFlags::FIN_SENT, self.fin_sent),
            (TcbFlags::ASK_ECN, self.ecn && !self.ecn_disable),
            (TcbFlags::ECN, self.ecn && self.ecn_permit),
            (TcbFlags::CWR_DUE, self.send_cwr),
            (TcbFlags::CE_SEEN, self.rcvd_ce),
        ];
        let set = bits.iter().filter(|(_, on)| *on);
        set.fold(TcbFlags::empty(), |flags, (bit, _)| flags | *bit)
    }

    fn state(&self) -> State {
        match self.state.as_str() {
            "CLOSED" => State::Closed,
            "LISTEN" => State::Listen,
            "SYN_SENT" => State::SynSent,
            "SYN_RCVD" => State::SynReceived,
            "ESTAB" => State::Established,
            "FIN_WAIT_1" => State::FinWait1,
            "LAST_ACK" => State::LastAck,
            "TIME_WAIT" => State::TimeWait,
            other => panic!("state {other}"),
        }
    }

    pub fn tcb(&self, base: u32) -> Tcb {
        let ends = if self.v6 { common::v6() } else { common::v4() };
        let (snd, rcv) = (Seq(base), Seq(!base) + self.rcv_nxt);
        let una = snd + self.snd_una;
        let mut tcb = Tcb::new(ends, self.t_maxopd, self.flags(), una, rcv).expect("size");
        tcb.state = self.state();
        if tcb.state.synchronized() {
            assert_eq!(tcb.max_segment(), self.t_maxseg);
        } else {
            tcb.iss = una;
        }
        tcb.up = snd + self.snd_up;
        tcb.wnd = self.snd_wnd;
        tcb.max_wnd = self.max_sndwnd;
        tcb.recover = snd + self.snd_last;
        tcb.dup_acks = self.dupacks;
        tcb.send = SendState {
            nxt: snd + self.snd_nxt,
            max: snd + self.snd_max,
            cwnd: self.snd_cwnd,
            last_idle: self.last_idle,
            backoff: self.rxtshift,
            rexmt: self.rexmt_ms.map(|ms| NOW + ms),
            persist: self.persist_ms.map(|ms| NOW + ms),
        };
        tcb.rcv.adv = Seq(!base) + self.rcv_adv;
        tcb.rcv.scale = self.rcv_scale;
        tcb.rcv.space = self.rcv_sb_space;
        tcb.rcv.hiwat = self.rcv_sb_hiwat;
        tcb.rcv.last = Time(NOW.0 - self.quiet_ms);
        tcb.rcv.sacks = self.numsacks;
        tcb.rcv.sack_blocks = [SackBlock {
            start: rcv + 5000,
            end: rcv + 6000,
        }; 3];
        tcb.rtt.srtt = self.srtt;
        tcb.rtt.var = self.rttvar;
        tcb.rtt.min = self.rttmin;
        tcb.rtt.base = self.rto_ms;
        tcb.rtt.rto = self.rto_ms;
        tcb
    }

    /// What the peer reported as missing goes into the scoreboard, if that takes it.
    pub fn report_holes(&self, base: u32, tcb: &mut Tcb) -> Result<(), BadHole> {
        let snd = Seq(base);
        let hole = |hole: &Missing| Hole {
            start: snd + hole.start,
            end: snd + hole.end,
            rxmit: snd + hole.rexmit,
            dups: hole.dups,
        };
        let holes: Vec<Hole> = self.holes.iter().map(hole).collect();
        let (una, max) = (tcb.una, tcb.send.max);
        tcb.scoreboard
            .replace(&holes, snd + self.rcv_lastsack, una, max)
    }

    pub fn send_buffer(&self, set: &BufferSet) -> SockBuf {
        let mut sb = SockBuf::with_limits(self.snd_sb_hiwat, usize::MAX);
        let whole = [Stored {
            ext: 2048,
            hdr: true,
            len: self.snd_sb_cc,
        }];
        let stored = match &self.snd_sb {
            Some(stored) => &stored[..],
            None if self.snd_sb_cc > 0 => &whole,
            None => &[],
        };
        for s in stored {
            // H7 and H7b list full clusters for a count of bytes that ends inside the last one.
            let len = s.len.min(self.snd_sb_cc - sb.len());
            sb.append_stream(piece(set, s.ext, s.hdr, &pattern(sb.len(), len)));
        }
        assert_eq!(sb.len(), self.snd_sb_cc);
        sb
    }

    /// Which pool fails at which get: the pools are mbufs, then BSD's eight classes upward.
    pub fn failure(&self) -> Option<(usize, u64)> {
        self.fail_allocation.as_deref().map(|what| match what {
            "hdr" => (0, 1),
            "copym" => (0, 2),
            "cluster" => (7, 1),
            other => panic!("unknown failure {other}"),
        })
    }

    pub fn ip_error(&self, segment: usize) -> Result<(), OutputError> {
        match self.ip_error.as_deref() {
            Some(_) if segment != self.ip_error_at_segment => Ok(()),
            None => Ok(()),
            Some("ENOBUFS") => Err(OutputError::NoBuffers),
            Some("EHOSTUNREACH") => Err(OutputError::Unreachable),
            Some("EPERM") => Err(OutputError::Other(1)),
            Some(other) => panic!("unknown error {other}"),
        }
    }
}
