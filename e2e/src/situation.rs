//! Situations (`situations/*.toml`): how a project and a client are set up, what the model does there, and what must
//! hold. A new situation is a new file; what a client cannot do in it is in the client's `expect.toml`.

mod facts;
mod readme;
mod run;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::client::read_toml;
use crate::error::{AtPath, Result};
use crate::scenario::{Step, Thread};

pub use run::run_situation;

/// One file. Paths and texts may have the placeholders of a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Situation {
    /// The name of the file.
    #[serde(skip)]
    pub name: String,
    /// A folder of `projects/`.
    pub project: String,
    /// Only in these clients, by slug; in all by default.
    #[serde(default)]
    pub clients: Vec<String>,
    /// The commands that README.md shows set the project up, instead of `trust` and `install`; after the session
    /// `anyhook uninstall` runs.
    #[serde(default)]
    pub readme: bool,
    /// Programs on the PATH of the client: shell scripts by name.
    #[serde(default)]
    pub programs: BTreeMap<String, String>,
    /// The scopes that the bridge is installed in, in this order.
    #[serde(default = "project_scope")]
    pub install: Vec<String>,
    /// Other agents whose files get the bridge too, in the scopes of `install`: the client may read them.
    #[serde(default)]
    pub other_agents: Vec<String>,
    /// The bridge is in the files of `other_agents` alone, and not in the client's own.
    #[serde(default)]
    pub only_in_other_files: bool,
    /// The managed policy.
    #[serde(default)]
    pub managed: Option<String>,
    /// A shell script that runs in the project when it is trusted, before the bridge is installed.
    #[serde(default)]
    pub setup: Option<String>,
    /// Where the client is started.
    #[serde(default)]
    pub start_in: Option<String>,
    /// Modes of the client; one that it lacks is a *cannot* of all checks.
    #[serde(default)]
    pub modes: Vec<String>,
    /// Modes that are used if the client has them.
    #[serde(default)]
    pub optional_modes: Vec<String>,
    /// The mode in which the client runs once more, when it has ended.
    #[serde(default)]
    pub again: Option<String>,
    /// How many clients run at the same time.
    #[serde(default = "one")]
    pub at_once: usize,
    /// The daemon runs the hooks.
    #[serde(default)]
    pub daemon: bool,
    /// The bridge is installed for the user with `--via daemon`, and a daemon runs.
    #[serde(default)]
    pub via_daemon: bool,
    /// The client has hooks of its own as well, which deny what contains this text.
    #[serde(default)]
    pub native_deny: Option<String>,
    /// anyhook is not on the PATH of the client.
    #[serde(default)]
    pub without_anyhook: bool,
    /// Ctrl-C is pressed when this file appears.
    #[serde(default)]
    pub interrupt_when: Option<String>,
    /// A file with the id of a process that has to end by itself.
    #[serde(default)]
    pub ends: Option<String>,
    /// `anyhook doctor` is asked where the client is started.
    #[serde(default)]
    pub doctor: bool,
    pub check: Vec<SituationCheck>,
}

/// One row of the results: what the model does, and what must then hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SituationCheck {
    pub name: String,
    /// For readers of the page.
    pub means: String,
    #[serde(default)]
    pub steps: Vec<Step>,
    #[serde(default)]
    pub threads: Vec<Thread>,
    /// A call is denied, which in some clients ends the run.
    #[serde(default)]
    pub denies: bool,
    pub holds: Vec<Fact>,
    /// Must hold even if the check is a *cannot*: a guard is never weakened.
    #[serde(default)]
    pub always: Vec<Fact>,
}

/// Something that can be seen after a session.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fact {
    Exists(String),
    Missing(String),
    /// The whole content of a file.
    Content {
        path: String,
        is: String,
    },
    /// A request to the model contained the text.
    Told(String),
    Untold(String),
    /// Requests contained the text, and none of them twice.
    ToldOnce(String),
    /// The same for text that a hook on the prompt gives and counts in a file, in a client that fires the event of
    /// the prompt again after every tool call.
    ToldOncePerPrompt {
        text: String,
        path: String,
    },
    /// The hook of this name denied a call.
    Denied(String),
    /// The hook failed in this way.
    Failed {
        hook: String,
        with: String,
    },
    /// So many calls with this text were reported before they ran.
    Reported {
        text: String,
        times: usize,
    },
    /// The journal names no agent but the client.
    RecordedAsClient,
    /// The file has this line.
    Includes {
        path: String,
        line: String,
    },
    /// The file names a folder that is not the project.
    Elsewhere(String),
    /// The file has this many lines, by which hooks and commands count how often they ran.
    Counted {
        path: String,
        times: usize,
    },
    /// The journal has a warning with this text.
    Warned(String),
    /// The client printed the text.
    Printed(String),
    /// The journal has events of this many sessions.
    Sessions(usize),
    /// `anyhook doctor` reported an error.
    DoctorRed,
    /// All context that hooks gave reached the model or is named as lost.
    ContextAccounted {
        /// Of these events; of all by default.
        #[serde(default)]
        only: Vec<String>,
        #[serde(default)]
        without: Vec<String>,
    },
    /// After the session, `anyhook uninstall` restored every byte.
    Restored,
    /// Ctrl-C was pressed, and the client ended.
    Interrupted,
    /// The processes of `ends` have ended.
    Ended,
    /// The client's own hooks were called for this text.
    NativeCalled(String),
    Any(Vec<Fact>),
    All(Vec<Fact>),
    /// The output of `anyhook install` contained the text, if and only if the fact holds.
    InstallSaid {
        text: String,
        exactly_if: Box<Fact>,
    },
}

fn project_scope() -> Vec<String> {
    vec!["project".to_owned()]
}

fn one() -> usize {
    1
}

impl Situation {
    /// Every situation, ordered by file name.
    pub fn all() -> Result<Vec<Situation>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("situations");
        let mut paths = Vec::new();
        for entry in fs::read_dir(&folder).at("list", &folder)? {
            paths.push(entry.at("list", &folder)?.path());
        }
        paths.sort();
        paths
            .into_iter()
            .map(|path| {
                let mut situation: Situation = read_toml(&path)?;
                // The number in front is only for the order.
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let digits = |mark: char| mark.is_ascii_digit() || mark == '-';
                name.trim_start_matches(digits)
                    .clone_into(&mut situation.name);
                Ok(situation)
            })
            .collect()
    }
}
