//! One call as the guards see it: prepared once, judged by every guard.

mod unknown_tools;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use anyhook_model::HookEvent;
use serde_json::{Map, Value};

use crate::context::GuardContext;
use crate::paths::normalize;
use crate::shell::{Invocation, ShellAnalysis, ShellKind, analyze};

/// A call that several guards judge; its commands are read at most once.
pub struct GuardInput<'a> {
    pub event: &'a HookEvent,
    pub context: &'a GuardContext,
    pub(crate) project: Option<String>,
    pub(crate) home: Option<String>,
    pub(crate) cwd: Option<String>,
    readings: Option<&'a CommandReadings>,
    analyses: OnceCell<Rc<[ShellAnalysis]>>,
    files: OnceCell<Vec<ToolFile>>,
}

/// Commands that were read before. Guards and conditions of the hooks of one event
/// share them, so that a command is read once and not by each hook.
#[derive(Debug, Default)]
pub struct CommandReadings {
    known: RefCell<Vec<CommandReading>>,
}

#[derive(Debug)]
struct CommandReading {
    commands: Vec<String>,
    shells: &'static [ShellKind],
    /// Everything else that a reading depends on: folder, project and home.
    place: [Option<String>; 3],
    analyses: Rc<[ShellAnalysis]>,
}

/// Readings that are kept: hooks that rewrite a command give new ones.
const MAX_READINGS: usize = 8;

/// What a file tool does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileUse {
    Read,
    Write,
    Delete,
    /// The folder in which a search looks.
    Search,
}

/// A file that a file tool names.
#[derive(Debug, Clone)]
pub(crate) struct ToolFile {
    /// Absolute.
    pub(crate) path: String,
    pub(crate) file_use: FileUse,
    /// What is written.
    pub(crate) content: String,
    /// The names that a search is limited to.
    pub(crate) glob: Option<String>,
}

impl<'a> GuardInput<'a> {
    pub fn new(event: &'a HookEvent, context: &'a GuardContext) -> Self {
        Self::prepare(event, context, None)
    }

    /// A call whose commands may have been read for another hook already.
    pub fn with_readings(
        event: &'a HookEvent,
        context: &'a GuardContext,
        readings: &'a CommandReadings,
    ) -> Self {
        Self::prepare(event, context, Some(readings))
    }

    fn prepare(
        event: &'a HookEvent,
        context: &'a GuardContext,
        readings: Option<&'a CommandReadings>,
    ) -> Self {
        let text = |path: &std::path::PathBuf| normalize(None, &path.to_string_lossy());
        let own_cwd = event
            .tool_input()
            .and_then(|input| input.get("cwd"))
            .and_then(Value::as_str);
        let event_cwd = event.cwd.as_deref().and_then(|cwd| normalize(None, cwd));
        let project = context.project.as_ref().and_then(text);
        let cwd = match own_cwd {
            Some(cwd) => normalize(event_cwd.as_deref().or(project.as_deref()), cwd),
            None => event_cwd.clone(),
        };
        Self {
            event,
            context,
            home: context.home.as_ref().and_then(text),
            cwd: cwd.or_else(|| project.clone()),
            project: project.or(event_cwd),
            readings,
            analyses: OnceCell::new(),
            files: OnceCell::new(),
        }
    }

    /// The commands of a shell tool, as they were read.
    pub(crate) fn analyses(&self) -> &[ShellAnalysis] {
        self.analyses.get_or_init(|| {
            let shells = self.shells();
            let commands = self.commands();
            let place = [self.cwd.clone(), self.project.clone(), self.home.clone()];
            let read = |commands: &[String]| -> Rc<[ShellAnalysis]> {
                let readings = commands
                    .iter()
                    .flat_map(|command| shells.iter().map(move |shell| (command, *shell)));
                let cwd = self.cwd.as_deref();
                readings
                    .map(|(command, shell)| {
                        let mut analysis = analyze(command, shell, cwd, self.context);
                        // Text of one shell is often none of another.
                        let is_first = shells.first() == Some(&shell);
                        analysis.is_incomplete &= is_first;
                        analysis.has_errors &= is_first;
                        analysis
                    })
                    .collect()
            };
            let Some(readings) = self.readings.filter(|_| !commands.is_empty()) else {
                return read(&commands);
            };
            let mut known = readings.known.borrow_mut();
            let found = known.iter().find(|reading| {
                reading.shells == shells && reading.place == place && reading.commands == commands
            });
            if let Some(reading) = found {
                return Rc::clone(&reading.analyses);
            }
            let analyses = read(&commands);
            if known.len() < MAX_READINGS {
                known.push(CommandReading {
                    commands,
                    shells,
                    place,
                    analyses: Rc::clone(&analyses),
                });
            }
            analyses
        })
    }

    pub(crate) fn invocations(&self) -> impl Iterator<Item = &Invocation> {
        self.analyses()
            .iter()
            .flat_map(|analysis| analysis.invocations.iter())
    }

    /// The texts of the commands of this call.
    pub(crate) fn commands(&self) -> Vec<String> {
        let Some(input) = self.event.tool_input() else {
            return Vec::new();
        };
        let mut commands = Vec::new();
        for key in ["command", "commands", "script", "cmd"] {
            match input.get(key) {
                Some(Value::String(text)) => commands.push(text.clone()),
                Some(Value::Array(items)) if key == "command" || key == "cmd" => {
                    // An argument vector.
                    let words: Vec<String> = items
                        .iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect();
                    commands.push(anyhook_util::shell::join_script(&words));
                }
                Some(Value::Array(items)) => {
                    for item in items {
                        let text = item
                            .as_str()
                            .or_else(|| item.get("command").and_then(Value::as_str));
                        commands.extend(text.map(str::to_owned));
                    }
                }
                _ => {}
            }
        }
        commands
    }

    /// The shells that may run the commands. Which one an agent takes on Windows, most
    /// calls do not say, so what any of them would do counts there.
    fn shells(&self) -> &'static [ShellKind] {
        let named = self
            .event
            .tool_input()
            .and_then(|input| input.get("shell"))
            .and_then(Value::as_str);
        let name = named
            .or_else(|| self.event.native_tool_name())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_posix = || {
            let name = name.strip_suffix(".exe").unwrap_or(name);
            name.contains("bash") || matches!(name, "sh" | "zsh" | "dash" | "ksh" | "fish")
        };
        if name.contains("powershell") || name.contains("pwsh") {
            &[ShellKind::PowerShell]
        } else if matches!(name, "cmd" | "cmd.exe") {
            &[ShellKind::Cmd]
        } else if self.context.is_windows && !is_posix() {
            &[ShellKind::Posix, ShellKind::PowerShell, ShellKind::Cmd]
        } else {
            &[ShellKind::Posix]
        }
    }

    pub(crate) fn is_tool(&self, name: &str) -> bool {
        self.event.tool_name() == Some(name) || self.event.tool_kinds().any(|kind| kind == name)
    }

    /// The files that a file tool names.
    pub(crate) fn files(&self) -> &[ToolFile] {
        self.files.get_or_init(|| match self.event.tool_input() {
            Some(input) => self.collect_files(input),
            None => Vec::new(),
        })
    }

    fn collect_files(&self, input: &Map<String, Value>) -> Vec<ToolFile> {
        let mut found = Vec::new();
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        if let Some(Value::Array(files)) = input.get("files") {
            for file in files.iter().filter_map(Value::as_object) {
                let field = |key: &str| file.get(key).and_then(Value::as_str);
                let file_use = match field("operation") {
                    Some("delete") => FileUse::Delete,
                    _ if self.is_tool("file_read") && !file.contains_key("edits") => FileUse::Read,
                    _ => FileUse::Write,
                };
                for key in ["path", "move_to", "new_path", "to"] {
                    if let Some(path) = field(key) {
                        found.extend(self.tool_file(path, file_use, written_text(file), None));
                    }
                }
            }
        }
        if self.is_outside_vocabulary() {
            let tool = self.event.native_tool_name().unwrap_or_default();
            for file in unknown_tools::named_files(tool, input) {
                found.extend(self.tool_file(file.path, file.file_use, written_text(input), None));
            }
        }
        let is_write = self.is_tool("file_write")
            || self.is_tool("file_edit")
            || input.contains_key("edits")
            || input.contains_key("content");
        let is_search = self.is_tool("search") || self.is_tool("find");
        if self.is_tool("shell") && !is_write && !is_search {
            return found;
        }
        let path = text("path").or_else(|| text("file_path"));
        if is_search {
            // A pattern of the find tool may name the file itself.
            let glob = if self.is_tool("find") {
                text("pattern").or_else(|| text("glob"))
            } else {
                text("glob")
            };
            let folder = path.unwrap_or(".");
            found.extend(self.tool_file(folder, FileUse::Search, String::new(), glob));
        } else if let Some(path) = path {
            let file_use = if is_write {
                FileUse::Write
            } else {
                FileUse::Read
            };
            if is_write
                || self.is_tool("file_read")
                || self.event.mcp().is_some()
                || self.event.tool_name().is_some()
            {
                found.extend(self.tool_file(path, file_use, written_text(input), None));
            }
        }
        found
    }

    /// Whether the tool is one of an MCP server, or one that no table knows.
    fn is_outside_vocabulary(&self) -> bool {
        let is_known = |name: &str| anyhook_model::registry::tool(name).is_some();
        self.event.mcp().is_some() || !self.event.tool_name().is_some_and(is_known)
    }

    fn tool_file(
        &self,
        path: &str,
        file_use: FileUse,
        content: String,
        glob: Option<&str>,
    ) -> Option<ToolFile> {
        let path = self.expand_home(path.strip_prefix("file://").unwrap_or(path));
        Some(ToolFile {
            path: normalize(self.cwd.as_deref(), &path)?,
            file_use,
            content,
            glob: glob.map(str::to_owned),
        })
    }

    fn expand_home(&self, path: &str) -> String {
        match (path.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{home}{rest}")
            }
            _ => path.to_owned(),
        }
    }

    /// The URL of a fetch tool.
    pub(crate) fn fetched_url(&self) -> Option<&str> {
        if self.is_tool("shell") {
            return None;
        }
        self.event.tool_input()?.get("url").and_then(Value::as_str)
    }
}

/// Everything that a write or edit puts into a file.
fn written_text(input: &Map<String, Value>) -> String {
    let mut text = String::new();
    for key in ["content", "new", "new_string", "new_str", "text"] {
        if let Some(value) = input.get(key).and_then(Value::as_str) {
            text.push_str(value);
            text.push('\n');
        }
    }
    for edit in input
        .get("edits")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        for key in ["new", "new_string", "content"] {
            if let Some(value) = edit.get(key).and_then(Value::as_str) {
                text.push_str(value);
                text.push('\n');
            }
        }
    }
    text
}
