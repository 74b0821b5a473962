//! Carries lines from a reader to a writer, byte for byte and in order, and
//! shows each one on the way.
//!
//! Whatever is written by others to the same writer falls between two lines,
//! never into one. Lines are gathered while more are at hand and written
//! together, so that a burst costs few system calls.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::decide::lock;

/// Larger lines are carried without being looked at.
pub(crate) const INSPECTED: usize = 256 << 20;
const BUFFER: usize = 64 << 10;

/// A writer that several share, gone once closed.
pub type Shared<W> = Mutex<Option<W>>;

#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The reader has no more. A last line without an end is left to the caller:
    /// nothing can be written after it.
    Reader(Vec<u8>),
    /// The writer takes no more, or is closed.
    Writer,
}

pub struct Pump<'a, R, W> {
    reader: BufReader<R>,
    writer: &'a Shared<W>,
    /// Whether bytes are waiting for the writer right now.
    writing: &'a AtomicBool,
    inspected: usize,
}

impl<'a, R: Read, W: Write> Pump<'a, R, W> {
    pub fn new(reader: R, writer: &'a Shared<W>, writing: &'a AtomicBool) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER, reader),
            writer,
            writing,
            inspected: INSPECTED,
        }
    }

    #[cfg(test)]
    fn inspecting(mut self, bytes: usize) -> Self {
        self.inspected = bytes;
        self
    }

    /// Shows every line to `look`. One for which it returns something is not
    /// written: `hold` has it from then on, and is called when all that came
    /// earlier has been written.
    pub fn run<T>(
        mut self,
        mut look: impl FnMut(&[u8]) -> Option<T>,
        mut hold: impl FnMut(T, &[u8]),
    ) -> Ended {
        let mut line = Vec::new();
        let mut ready = Vec::new();
        loop {
            line.clear();
            match self.line(&mut line) {
                Line::End => {
                    return match self.write(&mut ready) {
                        Ok(()) => Ended::Reader(line),
                        Err(_) => Ended::Writer,
                    };
                }
                Line::Whole => {
                    if let Some(held) = look(&line) {
                        if self.write(&mut ready).is_err() {
                            return Ended::Writer;
                        }
                        hold(held, &line);
                        continue;
                    }
                    ready.extend_from_slice(&line);
                    let more = ready.len() < BUFFER && self.reader.buffer().contains(&b'\n');
                    if !more && self.write(&mut ready).is_err() {
                        return Ended::Writer;
                    }
                }
                Line::TooLong => {
                    if self.write(&mut ready).is_err() || self.stream(&line).is_err() {
                        return Ended::Writer;
                    }
                }
            }
        }
    }

    /// Reads one line with its end, or what there is before the reader's.
    fn line(&mut self, line: &mut Vec<u8>) -> Line {
        loop {
            let Some(bytes) = self.fill() else {
                return Line::End;
            };
            let (taken, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            };
            line.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            self.reader.consume(taken);
            if ends {
                return Line::Whole;
            }
            if line.len() >= self.inspected {
                return Line::TooLong;
            }
        }
    }

    /// The bytes at hand; `None` at the end. A reader that fails has ended.
    fn fill(&mut self) -> Option<&[u8]> {
        loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok([]) | Err(_) => return None,
                Ok(_) => break,
            }
        }
        Some(self.reader.buffer())
    }

    /// Writes the beginning of a line and then the rest as it comes, with the
    /// writer held throughout.
    fn stream(&mut self, beginning: &[u8]) -> io::Result<()> {
        self.writing.store(true, Ordering::Relaxed);
        let mut writer = lock(self.writer);
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.write_all(beginning)?;
        while let Some(bytes) = self.fill() {
            let (taken, ends) = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            };
            writer.write_all(bytes.get(..taken).unwrap_or_default())?;
            self.reader.consume(taken);
            if ends {
                break;
            }
        }
        writer.flush()?;
        self.writing.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, ready: &mut Vec<u8>) -> io::Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        self.writing.store(true, Ordering::Relaxed);
        send(self.writer, ready)?;
        self.writing.store(false, Ordering::Relaxed);
        ready.clear();
        // One huge burst must not cost its memory for good.
        ready.shrink_to(4 * BUFFER);
        Ok(())
    }
}

enum Line {
    Whole,
    /// Only the beginning was read.
    TooLong,
    End,
}

/// Writes whole lines between those of a pump.
pub(crate) fn send<W: Write>(writer: &Shared<W>, bytes: &[u8]) -> io::Result<()> {
    let mut writer = lock(writer);
    let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    writer.write_all(bytes)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces of the wanted sizes.
    struct Pieces(Vec<u8>, Vec<usize>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let wanted = self.1.pop().unwrap_or(usize::MAX).max(1);
            let taken = wanted.min(into.len()).min(self.0.len());
            into[..taken].copy_from_slice(&self.0[..taken]);
            self.0.drain(..taken);
            Ok(taken)
        }
    }

    proptest! {
        /// However the bytes are cut, each line is shown once and whole, and what
        /// is not held comes out as it went in, in order.
        #[test]
        fn carries_every_byte_in_order(
            lines in prop::collection::vec("[ab{}\\x00\u{e9}]{0,40}", 0..20),
            last in "[ab]{0,10}",
            cuts in prop::collection::vec(1_usize..60, 0..40),
        ) {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
            let held = |line: &[u8]| line.starts_with(b"a");
            let out = Mutex::new(Some(Vec::new()));
            let mut shown = Vec::new();
            let ended = Pump::new(Pieces([&bytes, last.as_bytes()].concat(), cuts), &out, &AtomicBool::new(false)).run(
                |line| { shown.extend_from_slice(line); held(line).then_some(()) },
                |(), line| assert!(held(line)),
            );
            let expected: Vec<u8> = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !held(line)).flatten().copied().collect();
            prop_assert_eq!(ended, Ended::Reader(last.into_bytes()));
            prop_assert_eq!(&shown, &bytes);
            prop_assert_eq!(lock(&out).take().unwrap(), expected);
        }

        /// Lines over the limit are never shown and never changed.
        #[test]
        fn streams_what_is_too_long(sizes in prop::collection::vec(0_usize..200, 1..12), cuts in prop::collection::vec(1_usize..90, 0..40)) {
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| format!("{}\n", "x".repeat(*size)).into_bytes()).collect();
            let out = Mutex::new(Some(Vec::new()));
            let mut longest = 0;
            Pump::new(Pieces(bytes.clone(), cuts), &out, &AtomicBool::new(false)).inspecting(100).run(
                |line| { longest = longest.max(line.len()); None },
                |(), _| {},
            );
            prop_assert!(longest <= 200);
            prop_assert_eq!(lock(&out).take().unwrap(), bytes);
        }
    }

    #[test]
    fn what_came_before_a_held_line_is_out_before_it_is_shown() {
        let out = Mutex::new(Some(Vec::new()));
        Pump::new(&b"one\nheld\ntwo\n"[..], &out, &AtomicBool::new(false)).run(
            |line| (line == b"held\n").then_some(()),
            |(), line| {
                assert_eq!(line, b"held\n");
                assert_eq!(lock(&out).as_deref(), Some(&b"one\n"[..]));
            },
        );
        assert_eq!(lock(&out).as_deref(), Some(&b"one\ntwo\n"[..]));
    }

    #[test]
    fn a_closed_writer_ends_the_pump() {
        let out: Shared<Vec<u8>> = Mutex::new(None);
        let ended =
            Pump::new(&b"one\n"[..], &out, &AtomicBool::new(false)).run(|_| None, |(), _| {});
        assert_eq!(ended, Ended::Writer);
    }
}
