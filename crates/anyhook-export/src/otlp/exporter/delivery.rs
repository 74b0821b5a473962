//! Sends a request until the receiver has answered for each of its items.

use std::time::Duration;

use super::super::config::Signal;
use super::super::request::SignalRequest;
use super::super::send::Reply;
use super::{ExportControl, ExportNotice, OtlpExporter};
use crate::error::{ExportError, Result};

/// Receivers refuse requests that are much larger.
const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// A receiver that says "in an hour" is asked again after this time.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// When this many items alone were refused and none was taken, the settings are wrong.
const MAX_REFUSED_ITEMS: u64 = 50;

impl OtlpExporter {
    /// Sends a request, in parts if it is too large or a part of it is refused: one item
    /// that a receiver does not take must not cost the others. Returns the number of items
    /// that were taken.
    pub(super) fn deliver<R: SignalRequest>(
        &mut self,
        request: R,
        control: &mut ExportControl<'_>,
    ) -> Result<u64> {
        let (mut taken, mut refused) = (0, 0);
        let mut is_taken = false;
        let mut last_message = String::new();
        let mut parts = vec![request];
        while let Some(mut part) = parts.pop() {
            let count = part.item_count();
            let body = self.sender.encode(&part)?;
            let reply = if body.len() > MAX_REQUEST_BYTES && count > 1 {
                None
            } else {
                Some(self.send_until_answered::<R>(&body, control)?)
            };
            match reply {
                Some(Reply::Accepted { rejected, message }) => {
                    if !self.taken.contains(&R::SIGNAL) {
                        self.taken.push(R::SIGNAL);
                    }
                    taken += (count as u64).saturating_sub(rejected);
                    is_taken = true;
                    if rejected > 0 {
                        self.note_rejected(R::SIGNAL, rejected, &message, control);
                    }
                }
                Some(Reply::BadContent { message }) if count <= 1 => {
                    refused += 1;
                    last_message = message;
                    if !is_taken && refused >= MAX_REFUSED_ITEMS {
                        break;
                    }
                }
                Some(Reply::Unsupported { message }) => {
                    return self.drop_signal(R::SIGNAL, message, control);
                }
                Some(Reply::Refused { message }) => return Err(self.refusal(message)),
                Some(Reply::BadContent { .. }) | None => {
                    let rest = part.split_off(count / 2);
                    parts.extend([rest, part]);
                }
                // Waited for above.
                Some(Reply::Unavailable { reason, .. }) => return Err(self.unavailable(reason)),
            }
        }
        if refused > 0 && !is_taken {
            return Err(self.refusal(last_message));
        }
        if refused > 0 {
            self.note_rejected(R::SIGNAL, refused, &last_message, control);
        }
        Ok(taken)
    }

    /// A receiver without this signal gets the others; without traces there is none.
    fn drop_signal(
        &mut self,
        signal: Signal,
        message: String,
        control: &mut ExportControl<'_>,
    ) -> Result<u64> {
        if signal == Signal::Traces || self.signals.len() == 1 {
            return Err(self.refusal(message));
        }
        (control.notice)(ExportNotice::Unsupported {
            signal,
            message: &message,
        });
        self.signals.retain(|other| *other != signal);
        Ok(0)
    }

    fn note_rejected(
        &mut self,
        signal: Signal,
        count: u64,
        message: &str,
        control: &mut ExportControl<'_>,
    ) {
        self.summary.rejected += count;
        (control.notice)(ExportNotice::Rejected {
            signal,
            count,
            message,
        });
    }

    fn send_until_answered<R: SignalRequest>(
        &self,
        body: &[u8],
        control: &mut ExportControl<'_>,
    ) -> Result<Reply> {
        let mut delay = MIN_RETRY_DELAY;
        let mut attempts = 0;
        loop {
            let (reason, retry_after) = match self.sender.send::<R>(body)? {
                Reply::Unavailable {
                    reason,
                    retry_after,
                } => (reason, retry_after),
                // It has taken this signal before: something in front of it answers.
                Reply::Unsupported { message } if self.taken.contains(&R::SIGNAL) => {
                    (message, None)
                }
                reply => return Ok(reply),
            };
            attempts += 1;
            if self.max_attempts.is_some_and(|limit| attempts >= limit) {
                return Err(self.unavailable(reason));
            }
            let retry_in = match retry_after {
                Some(delay) => delay.min(MAX_RETRY_AFTER),
                None => anyhook_util::time::jittered(delay),
            };
            delay = (delay * 2).min(MAX_RETRY_DELAY);
            (control.notice)(ExportNotice::Unavailable {
                reason: &reason,
                retry_in,
            });
            if !(control.wait)(retry_in) {
                return Err(ExportError::Stopped);
            }
        }
    }

    fn refusal(&self, message: String) -> ExportError {
        ExportError::Refused {
            endpoint: self.config.shown_endpoint(),
            message,
        }
    }

    fn unavailable(&self, reason: String) -> ExportError {
        ExportError::Unavailable {
            endpoint: self.config.shown_endpoint(),
            reason,
        }
    }
}
