//! The same event, delivered twice.
//!
//! Some agents read two configuration files and call us once for each. An
//! observer would then see everything twice, and the model would read the same
//! context twice. The second call is answered with nothing when all of this
//! holds:
//!
//! * the event cannot be blocked: a second answer to a blocking event must be
//!   the same decision, so those always run;
//! * agent, session, native event and parent process are the same;
//! * with a tool call's id: it is the same, and the first call is younger than
//!   two seconds;
//! * without one: the whole event is the same, and the first call is still
//!   being handled, or ended less than 0.3 seconds ago. A second notification
//!   with the same words a moment later is a new one.
//!
//! In doubt (no session, no state folder) the event is handled.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhook_model::HookEvent;
use anyhook_model::event::field;
use anyhook_model::registry::{self, Semantic};

use crate::files;
use crate::trust::hash;

const WITH_ID: Duration = Duration::from_secs(2);
const AFTER_END: Duration = Duration::from_millis(300);

/// The first caller's mark; it tells the end of the handling when dropped.
#[derive(Debug)]
pub struct Claim {
    path: Option<PathBuf>,
}

#[derive(Debug)]
pub enum Claimed {
    First(Claim),
    Duplicate,
}

/// Claims an event for this call.
pub fn claim(state: &Path, event: &HookEvent, parent: u32) -> Claimed {
    let unclaimed = Claimed::First(Claim { path: None });
    let is_observed =
        registry::event(&event.event).is_some_and(|known| known.blocking == Semantic::Observe);
    let (true, Some(session)) = (is_observed, &event.session_id) else {
        return unclaimed;
    };
    let call = event.text(field::TOOL_CALL_ID);
    let whole = || {
        let mut event = event.clone();
        event.timestamp = None;
        serde_json::to_string(&event).unwrap_or_default()
    };
    let subject = call.map_or_else(whole, str::to_owned);
    let parent = parent.to_string();
    let key = [
        &event.source,
        session,
        &event.native_event,
        &event.event,
        &parent,
        &subject,
    ];
    let key = hash(key.map(String::as_str).join("\0").as_bytes());
    let path = state.join("claims").join(key.get(..32).unwrap_or(&key));
    match create(&path) {
        Ok(()) => Claimed::First(Claim { path: Some(path) }),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => unclaimed,
        Err(_) if is_fresh(&path, call.is_some()) => Claimed::Duplicate,
        Err(_) => {
            // An old claim: this is a new event of the same words.
            let _ = File::create(&path);
            Claimed::First(Claim { path: Some(path) })
        }
    }
}

fn create(path: &Path) -> io::Result<()> {
    let new = || {
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map(drop)
    };
    new().or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        files::create_private_dir(path.parent().ok_or(error)?)?;
        new()
    })
}

fn is_fresh(path: &Path, has_id: bool) -> bool {
    let Ok(data) = std::fs::metadata(path) else {
        return false;
    };
    // Its time is that of its begin while it is empty, then that of its end.
    let age = data.modified().ok().and_then(|time| time.elapsed().ok());
    let is_ended = data.len() > 0;
    let limit = if has_id || !is_ended {
        WITH_ID
    } else {
        AFTER_END
    };
    age.is_some_and(|age| age < limit)
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::write(path, "ended");
        }
    }
}
