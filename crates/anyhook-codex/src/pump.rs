//! Carries lines from a reader to a writer, byte for byte and in order, and shows
//! each one to its caller.
//!
//! What others write to the same writer comes between two lines, never inside one.
//! Lines that are already buffered are written together, so that a burst costs few
//! system calls.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhook_util::sync::lock;

/// Longer lines are carried without being inspected.
pub(crate) const MAX_INSPECTED_LINE_BYTES: usize = 256 << 20;
const BUFFER_BYTES: usize = 64 << 10;

/// A shared writer; `None` once closed.
pub type SharedWriter<W> = Mutex<Option<W>>;

#[derive(Debug, PartialEq, Eq)]
pub enum PumpEnd {
    /// The reader has ended. A last line without a line feed is left to the caller:
    /// nothing can be written after it.
    Reader(Vec<u8>),
    /// The writer failed or is closed.
    Writer,
}

pub struct Pump<'a, R, W> {
    reader: BufReader<R>,
    writer: &'a SharedWriter<W>,
    /// Whether bytes are waiting for the writer right now.
    is_writing: &'a AtomicBool,
    max_inspected: usize,
}

impl<'a, R: Read, W: Write> Pump<'a, R, W> {
    pub fn new(reader: R, writer: &'a SharedWriter<W>, is_writing: &'a AtomicBool) -> Self {
        Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            writer,
            is_writing,
            max_inspected: MAX_INSPECTED_LINE_BYTES,
        }
    }

    #[cfg(test)]
    fn inspecting(mut self, bytes: usize) -> Self {
        self.max_inspected = bytes;
        self
    }

    /// Shows every line to `inspect`. If that returns a value, the line is not written
    /// but passed to `hold` with it, after all earlier lines have been written.
    pub fn run<T>(
        mut self,
        inspect: impl FnMut(&[u8]) -> Option<T>,
        hold: impl FnMut(T, &[u8]),
    ) -> PumpEnd {
        match self.carry_lines(inspect, hold) {
            Ok(last_line) => PumpEnd::Reader(last_line),
            Err(_) => PumpEnd::Writer,
        }
    }

    fn carry_lines<T>(
        &mut self,
        mut inspect: impl FnMut(&[u8]) -> Option<T>,
        mut hold: impl FnMut(T, &[u8]),
    ) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut ready = Vec::new();
        loop {
            line.clear();
            match self.read_line(&mut line) {
                LineRead::End => {
                    self.write(&mut ready)?;
                    return Ok(line);
                }
                LineRead::Whole => {
                    if let Some(held) = inspect(&line) {
                        self.write(&mut ready)?;
                        hold(held, &line);
                        continue;
                    }
                    ready.extend_from_slice(&line);
                    let has_more = self.reader.buffer().contains(&b'\n');
                    if !has_more || ready.len() >= BUFFER_BYTES {
                        self.write(&mut ready)?;
                    }
                }
                LineRead::TooLong => {
                    self.write(&mut ready)?;
                    self.stream_line(&line)?;
                }
            }
        }
    }

    /// Reads one line with its line feed, or the rest at the end.
    fn read_line(&mut self, line: &mut Vec<u8>) -> LineRead {
        loop {
            let Some((piece, is_last)) = self.next_piece() else {
                return LineRead::End;
            };
            line.extend_from_slice(piece);
            let length = piece.len();
            self.reader.consume(length);
            if is_last {
                return LineRead::Whole;
            }
            if line.len() >= self.max_inspected {
                return LineRead::TooLong;
            }
        }
    }

    /// The buffered bytes of the current line, and whether they end it; `None` at the
    /// end. A reader that fails has ended.
    fn next_piece(&mut self) -> Option<(&[u8], bool)> {
        loop {
            match self.reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok([]) | Err(_) => return None,
                Ok(_) => break,
            }
        }
        let mut pieces = self.reader.buffer().split_inclusive(|byte| *byte == b'\n');
        let piece = pieces.next()?;
        Some((piece, piece.ends_with(b"\n")))
    }

    /// Writes the beginning of a line and then the rest as it comes, with the writer
    /// locked all the time.
    fn stream_line(&mut self, beginning: &[u8]) -> io::Result<()> {
        self.is_writing.store(true, Ordering::Relaxed);
        let mut writer = lock(self.writer);
        let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writer.write_all(beginning)?;
        while let Some((piece, is_last)) = self.next_piece() {
            writer.write_all(piece)?;
            let length = piece.len();
            self.reader.consume(length);
            if is_last {
                break;
            }
        }
        writer.flush()?;
        self.is_writing.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, ready: &mut Vec<u8>) -> io::Result<()> {
        if ready.is_empty() {
            return Ok(());
        }
        self.is_writing.store(true, Ordering::Relaxed);
        write_lines(self.writer, ready)?;
        self.is_writing.store(false, Ordering::Relaxed);
        ready.clear();
        // One huge burst must not keep its memory.
        ready.shrink_to(4 * BUFFER_BYTES);
        Ok(())
    }
}

enum LineRead {
    Whole,
    /// Only the beginning was read.
    TooLong,
    End,
}

/// Writes whole lines between those of a pump.
pub(crate) fn write_lines<W: Write>(writer: &SharedWriter<W>, bytes: &[u8]) -> io::Result<()> {
    let mut writer = lock(writer);
    let writer = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    writer.write_all(bytes)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads its bytes in pieces of these sizes.
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
            prop_assert_eq!(ended, PumpEnd::Reader(last.into_bytes()));
            prop_assert_eq!(&shown, &bytes);
            prop_assert_eq!(lock(&out).take().unwrap(), expected);
        }

        /// Lines over the limit are never shown and never changed.
        #[test]
        fn streams_lines_that_are_too_long(sizes in prop::collection::vec(0_usize..200, 1..12), cuts in prop::collection::vec(1_usize..90, 0..40)) {
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
    fn earlier_lines_are_written_before_a_line_is_held() {
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
        let out: SharedWriter<Vec<u8>> = Mutex::new(None);
        let ended =
            Pump::new(&b"one\n"[..], &out, &AtomicBool::new(false)).run(|_| None, |(), _| {});
        assert_eq!(ended, PumpEnd::Writer);
    }
}
