//! Runs a scenario: what `tests/data/traces/README.md` says of the lines.

use std::collections::VecDeque;

use mbuf::{Mbuf, Packet};
use tcp_output::connection::{Config, Connection, Events};
use tcp_output::input::{Incoming, TcpOption};
use tcp_output::options::Timestamps;
use tcp_output::policy::Reference;
use tcp_output::wire::TcpFlags;
use tcp_output::*;

use crate::alone::{Alone, PEER};

/// Our SYN's number.
const OURS: Seq = Seq(99);

/// A segment in words, with numbers that count from the SYN.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    flags: String,
    start: u32,
    end: u32,
    ack: Option<u32>,
    win: Option<u16>,
    options: Option<String>,
    /// `ce`, `ect`, `by` with its number.
    ecn: bool,
    by: Option<u32>,
}

impl Line {
    fn parse(text: &str) -> Line {
        let (text, options) = match text.split_once('<') {
            Some((front, rest)) => {
                let (options, behind) = rest.split_once('>').expect("closed");
                (format!("{front}{behind}"), Some(options.to_string()))
            }
            None => (text.to_string(), None),
        };
        let mut words = text.split_whitespace();
        let mut word = || words.next().map(str::to_string);
        let flags = word().expect("flags");
        let range = word().expect("numbers");
        let (start, end) = range.split_once(':').unwrap_or((&range, &range));
        let mut line = Line {
            flags,
            start: number(start),
            end: number(end),
            options,
            ..Line::default()
        };
        while let Some(name) = word() {
            let mut value = || number(&word().expect("a number"));
            match name.as_str() {
                "ack" => line.ack = Some(value()),
                "win" => line.win = Some(value() as u16),
                "by" => line.by = Some(value()),
                "ce" | "ect" => line.ecn = true,
                other => panic!("what is {other}?"),
            }
        }
        line
    }

    /// What was sent, in these words.
    fn of(packet: &Mbuf) -> Line {
        let segment = Incoming::parse(packet).expect("what we sent");
        let start = segment.seq - OURS;
        Line {
            flags: flags_in_words(segment.flags),
            start,
            end: start + segment.payload_len(),
            ack: Some(if segment.flags.contains(TcpFlags::ACK) {
                segment.ack - PEER
            } else {
                0
            }),
            win: Some(segment.window),
            options: Some(options_in_words(&segment)),
            ecn: packet.to_vec()[1] & 3 == 2,
            by: None,
        }
    }

    /// Whether what was sent is what this line says.
    fn allows(&self, sent: &Line) -> bool {
        fn same<T: PartialEq>(named: &Option<T>, sent: &Option<T>) -> bool {
            named.is_none() || named == sent
        }
        (&self.flags, self.start, self.end) == (&sent.flags, sent.start, sent.end)
            && same(&self.ack, &sent.ack)
            && same(&self.win, &sent.win)
            && same(&self.options, &sent.options)
            && self.ecn == sent.ecn
    }

    /// One line for each segment of a row.
    fn row(self) -> Vec<Line> {
        let Some(by) = self.by else {
            return vec![self];
        };
        let piece = |start: u32| Line {
            start,
            end: (start + by).min(self.end),
            by: None,
            ..self.clone()
        };
        (self.start..self.end)
            .step_by(by as usize)
            .map(piece)
            .collect()
    }
}

fn number(text: &str) -> u32 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

const FLAGS: [(TcpFlags, char); 8] = [
    (TcpFlags::FIN, 'F'),
    (TcpFlags::SYN, 'S'),
    (TcpFlags::RST, 'R'),
    (TcpFlags::PSH, 'P'),
    (TcpFlags::ACK, '.'),
    (TcpFlags::URG, 'U'),
    (TcpFlags::ECE, 'E'),
    (TcpFlags::CWR, 'W'),
];

fn flags_in_words(flags: TcpFlags) -> String {
    let set = FLAGS.iter().filter(|(flag, _)| flags.contains(*flag));
    set.map(|(_, name)| *name).collect()
}

fn flags(words: &str) -> TcpFlags {
    let flag = |name: char| FLAGS.iter().find(|flag| flag.1 == name).expect("a flag").0;
    words.chars().map(flag).collect()
}

fn options_in_words(segment: &Incoming) -> String {
    let options = &segment.options;
    let mut words = Vec::new();
    words.extend(options.max_segment.map(|size| format!("mss {size}")));
    words.extend(options.sack_permitted.then(|| "sackok".to_string()));
    words.extend(options.window_scale.map(|shift| format!("ws {shift}")));
    words.extend(
        options
            .timestamps
            .map(|ts| format!("ts {}:{}", ts.value, ts.echo)),
    );
    let blocks = options.sack().iter();
    let blocks: Vec<_> = blocks
        .map(|block| format!("{}:{}", block.start - PEER, block.end - PEER))
        .collect();
    if !blocks.is_empty() {
        words.push(format!("sack {}", blocks.join(" ")));
    }
    words.join(",")
}

/// One connection under a scenario.
struct Run {
    alone: Alone,
    listens: Option<Config>,
    sent: VecDeque<(Time, Line)>,
    events: Events,
}

/// Runs a scenario.
///
/// # Panics
/// With the line, when it does not hold.
pub fn run(name: &str, words: &str, trace: &str) {
    let mut run = Run::open(words);
    for line in trace.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Err(why) = run.line(line) {
            panic!("{name}: {line}\n  {why}");
        }
    }
    assert!(
        run.sent.is_empty(),
        "{name}: unexpected at its end: {:?}",
        run.sent
    );
    let Run { alone, .. } = run;
    let Alone { set, tcp, .. } = alone;
    drop(tcp);
    assert!(set.is_full(), "{name}: buffers are missing");
}

impl Run {
    fn open(words: &str) -> Run {
        let mut config = Config {
            flags: TcbFlags::empty(),
            ..Config::default()
        };
        let (mut open, mut listens) = (false, false);
        let mut words = words.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || number(words.next().expect("a number"));
            match word {
                "open" => open = true,
                "listen" => listens = true,
                "plain" => {}
                "sack" => config.flags |= TcbFlags::ASK_SACK,
                "ts" => config.flags |= TcbFlags::ASK_TIMESTAMPS,
                "ws" => config.flags |= TcbFlags::ASK_SCALE,
                "ecn" => config.flags |= TcbFlags::ASK_ECN,
                "nodelay" => config.flags |= TcbFlags::NODELAY,
                "nopush" => config.flags |= TcbFlags::NOPUSH,
                "keepalive" => config.flags |= TcbFlags::KEEP_ALIVE,
                "rcv" => config.receive_buffer = value(),
                "challenges" => config.challenges_per_second = value(),
                other => panic!("what is {other}?"),
            }
        }
        let ecn = config.flags.contains(TcbFlags::ASK_ECN);
        let syn = TcpFlags::SYN | TcpFlags::ACK;
        let alone = match open {
            true if ecn => Alone::answered(config, syn | TcpFlags::ECE),
            true => Alone::answered(config, syn),
            false => Alone::asking(config),
        };
        let mut run = Run {
            alone,
            listens: listens.then_some(config),
            sent: VecDeque::new(),
            events: Events::empty(),
        };
        if !open && !listens {
            run.output();
        }
        run
    }

    /// What a line asks for, or why it does not hold.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (at, rest) = line.split_once(' ').expect("a time");
        let at = Time(at.parse().expect("a time"));
        let (what, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if what == ">" {
            return Line::parse(rest)
                .row()
                .iter()
                .try_for_each(|want| self.expect(at, want));
        }
        self.advance(at);
        if let Some((at, line)) = self.sent.front() {
            return Err(format!("unexpected at {}: {line:?}", at.0));
        }
        self.act(what, rest)
    }

    fn act(&mut self, what: &str, rest: &str) -> Result<(), String> {
        let Alone { tcp, set, now, .. } = &mut self.alone;
        let holds = |holds: bool, found: String| if holds { Ok(()) } else { Err(found) };
        match what {
            "state" => {
                let state = format!("{:?}", tcp.state());
                return holds(state == rest, state);
            }
            "cwnd" => {
                let cwnd = tcp.tcb().send.cwnd;
                return holds(cwnd == number(rest), format!("{cwnd}"));
            }
            "event" => {
                let named = Events::from_name(rest).expect("an event");
                return holds(self.events.contains(named), format!("{:?}", self.events));
            }
            "write" => {
                let data = vec![7; number(rest) as usize];
                assert_eq!(tcp.write(&data, set).expect("space"), data.len());
            }
            "read" => {
                let mut data = vec![0; number(rest) as usize];
                assert_eq!(tcp.read(&mut data), data.len());
            }
            "close" => self.events |= tcp.close(),
            "leave" => self.events |= tcp.leave(*now),
            "abort" => self.events |= tcp.abort(),
            "mtu" => assert!(tcp.on_path_mtu(number(rest))),
            "<" => self.arrive(&Line::parse(rest)),
            other => panic!("what is {other}?"),
        }
        self.output();
        Ok(())
    }

    fn expect(&mut self, at: Time, want: &Line) -> Result<(), String> {
        if self.sent.is_empty() {
            self.advance(at);
        }
        match self.sent.pop_front() {
            Some((when, line)) if when == at && want.allows(&line) => Ok(()),
            Some((when, line)) => Err(format!("at {}: {line:?}, not {want:?}", when.0)),
            None => Err("nothing was sent".into()),
        }
    }

    /// The clock goes on; timers expire on its way.
    fn advance(&mut self, to: Time) {
        while let Some(at) = self.alone.tcp.next_timeout().filter(|at| *at <= to) {
            self.alone.now = at;
            self.events |= self.alone.tcp.on_timer(at);
            self.output();
        }
        self.alone.now = to;
    }

    fn output(&mut self) {
        let Alone { tcp, set, now, .. } = &mut self.alone;
        let sent = &mut self.sent;
        let mut out = |packet: Mbuf| {
            sent.push_back((*now, Line::of(&packet)));
            Ok(())
        };
        tcp.poll_output(set, *now, &mut out).expect("buffers");
    }

    fn arrive(&mut self, line: &Line) {
        let data = vec![9; (line.end - line.start) as usize];
        let blocks = sack_blocks(line.options.as_deref().unwrap_or(""));
        let options = options(line.options.as_deref().unwrap_or(""), &blocks);
        let alone = &mut self.alone;
        alone.window = line.win.unwrap_or(60_000);
        alone.tos = if line.ecn { 3 } else { 0 };
        let (seq, ack) = (PEER + line.start, line.ack.map_or(Seq(0), |ack| OURS + ack));
        let packet = alone.packet(seq, ack, flags(&line.flags), &options, &data);
        let segment = Incoming::parse(&packet).expect("right");
        if let Some(config) = self.listens.take() {
            let tcp = Connection::accept(&segment, &config, Reference, OURS, alone.now);
            alone.tcp = tcp.expect("a SYN");
        } else {
            self.events |= alone.tcp.on_segment(&segment, packet, alone.now);
        }
    }
}

/// The bytes of the blocks that a line reports.
fn sack_blocks(words: &str) -> Vec<u8> {
    let Some(blocks) = words.split(',').find_map(|word| word.strip_prefix("sack ")) else {
        return Vec::new();
    };
    let bound = |text: &str| (OURS + number(text)).0.to_be_bytes();
    let block = |text: &str| {
        let (start, end) = text.split_once(':').expect("a range");
        [bound(start), bound(end)].concat()
    };
    blocks.split(' ').flat_map(block).collect()
}

fn options<'a>(words: &str, blocks: &'a [u8]) -> Vec<TcpOption<'a>> {
    let option = |word: &str| {
        let (name, value) = word.split_once(' ').unwrap_or((word, ""));
        match name {
            "mss" => TcpOption::MaxSegment(number(value) as u16),
            "ws" => TcpOption::WindowScale(number(value) as u8),
            "sackok" => TcpOption::SackPermitted,
            "sack" => TcpOption::Other {
                kind: 5,
                data: blocks,
            },
            "ts" => {
                let (value, echo) = value.split_once(':').expect("two clocks");
                let (value, echo) = (number(value), number(echo));
                TcpOption::Timestamps(Timestamps { value, echo })
            }
            other => panic!("what is {other}?"),
        }
    };
    words
        .split(',')
        .filter(|word| !word.is_empty())
        .map(option)
        .collect()
}

/// The scenarios of a file: name, words, trace.
pub fn scenarios(text: &str) -> Vec<(&str, &str, &str)> {
    let parts = text.split("@ ").skip(1);
    let parts = parts.map(|part| {
        let (head, trace) = part.split_once('\n').expect("a head");
        let (name, words) = head.split_once(':').expect("words");
        (name, words, trace)
    });
    parts.collect()
}
