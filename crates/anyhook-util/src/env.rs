//! Every environment variable that anyhook reads or sets, with its doc line,
//! and the only functions that read the environment.
//!
//! The manual page and `docs/configuration.md` are generated from [`VARIABLES`].
//! Variables that belong to one agent are named in that agent's table and read
//! with [`by_name`].

use std::ffi::OsString;

/// Who uses a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Read when anyhook runs.
    Read,
    /// Set for the hooks that anyhook runs.
    SetForHooks,
    /// Read when anyhook is built.
    BuildTime,
}

/// An environment variable.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub direction: Direction,
    /// What it does, in Markdown.
    pub about: &'static str,
}

impl Variable {
    pub fn os(&self) -> Option<OsString> {
        by_name_os(self.name)
    }

    /// `None` as well when the value is not Unicode.
    pub fn text(&self) -> Option<String> {
        by_name(self.name)
    }

    pub fn is(&self, value: &str) -> bool {
        self.os().is_some_and(|found| found == value)
    }

    /// The variable with a value, for a process to start.
    pub fn with(&self, value: impl Into<String>) -> (String, String) {
        (self.name.to_owned(), value.into())
    }
}

/// The variable of that name; `None` as well when its value is not Unicode.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn by_name(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn by_name_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// The whole environment, for a process or a search that needs all of it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub fn all() -> std::env::VarsOs {
    std::env::vars_os()
}

/// Takes away a variable that could end this process and the hooks: with too small a
/// stack for its threads, which a project can choose through the agent, a process dies
/// before it has answered.
///
/// To be called at the start, while there is one thread.
#[expect(unsafe_code, reason = "the environment belongs to the whole process")]
pub fn remove_stack_size() {
    if RUST_MIN_STACK.os().is_some() {
        // SAFETY: no other thread exists yet that could read the environment.
        unsafe { std::env::remove_var(RUST_MIN_STACK.name) };
    }
}

macro_rules! variables {
    ($($constant:ident $name:literal $direction:ident $about:literal)*) => {
        $(
            #[doc = $about]
            pub const $constant: Variable = Variable {
                name: $name,
                direction: Direction::$direction,
                about: $about,
            };
        )*

        /// All of them, in the order in which they are documented.
        pub const VARIABLES: &[Variable] = &[$($constant),*];
    };
}

variables! {
    ANYHOOK "ANYHOOK" Read
        "`0` turns all hooks off. Ignored where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_CONFIG_DIR "ANYHOOK_CONFIG_DIR" Read
        "Folder of your manifest, policy and settings; an absolute path. Ignored where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_STATE_DIR "ANYHOOK_STATE_DIR" Read
        "Folder of the journal, the store, approvals and other state; an absolute path. Ignored where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_MANAGED_DIR "ANYHOOK_MANAGED_DIR" Read
        "Folder of the administrator's manifest and policy; an absolute path. Ignored where the platform's own one exists, unless its policy allows it."
    ANYHOOK_TRUST "ANYHOOK_TRUST" Read
        "`all` runs project hooks without your approval. Ignored where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_STORE "ANYHOOK_STORE" Read
        "Store of the event log: a SQLite file or a PostgreSQL address. `--store` takes precedence."
    ANYHOOK_TOKEN "ANYHOOK_TOKEN" Read
        "Access token of the daemon; by default the one in the file `token` of the state folder. For `run --server` on this machine that file goes first. Ignored by `run` where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_JOURNAL_LIMIT "ANYHOOK_JOURNAL_LIMIT" Read
        "Size in bytes at which the journal file is rotated; 16 MiB by default, 1 MiB at least. Ignored where an administrator's folder exists, unless its policy allows it."
    ANYHOOK_LOG "ANYHOOK_LOG" Read
        "`debug` makes `anyhook run` report on standard error what it does."
    ANYHOOK_PROGRAM "ANYHOOK_PROGRAM" Read
        "Path that `install` writes for this program, instead of finding one that lasts: for packages that start it through a script of their own."
    CI "CI" Read
        "Any value but an empty one, `0` and `false` means that no user can be asked."
    AI_AGENT "AI_AGENT" Read
        "Any value but an empty one means that a coding agent runs the command: what would switch hooks on or off is then refused without a terminal."
    ANTHROPIC_API_KEY "ANTHROPIC_API_KEY" Read
        "Key of an evaluator with `api: anthropic`, unless `key_env` names another variable."
    OPENAI_API_KEY "OPENAI_API_KEY" Read
        "Key of an evaluator with `api: openai`, unless `key_env` names another variable."
    HOME "HOME" Read
        "Your home folder, if it is an absolute path; else, and where an administrator's folder exists, the one in the password database counts. Projects are not searched above it."
    XDG_CONFIG_HOME "XDG_CONFIG_HOME" Read
        "Base of the configuration folder on Linux and macOS; `~/.config` by default. Ignored where an administrator's folder exists, unless its policy allows it."
    XDG_STATE_HOME "XDG_STATE_HOME" Read
        "Base of the state folder on Linux and macOS; `~/.local/state` by default. Ignored where an administrator's folder exists, unless its policy allows it."
    XDG_DATA_HOME "XDG_DATA_HOME" Read
        "Base of the folder in which `install` keeps a copy of the program on Linux and macOS; `~/.local/share` by default."
    XDG_CACHE_HOME "XDG_CACHE_HOME" Read
        "Base of caches; a program that runs from there is copied by `install`."
    USERPROFILE "USERPROFILE" Read
        "Your home folder on Windows; `HOME` counts where it is not set."
    APPDATA "APPDATA" Read
        "Base of the configuration folder on Windows."
    LOCALAPPDATA "LOCALAPPDATA" Read
        "Base of the state folder on Windows, and of the folder in which `install` keeps a copy of the program."
    PROGRAM_DATA "ProgramData" Read
        "Base of the managed folder on Windows, where the system does not name one."
    PROGRAM_FILES "ProgramFiles" Read
        "Where Git for Windows is searched on Windows, for hooks that need a POSIX shell."
    SYSTEM_ROOT "SystemRoot" Read
        "Where `cmd.exe` is on Windows."
    PATH "PATH" Read
        "Where the programs of agents and of hooks are searched; for hooks of the administrator a fixed list of system folders counts."
    SHELL "SHELL" Read
        "Shell with which `doctor` tries the hooks of agents that use the user's shell."
    USERNAME "USERNAME" Read
        "Your name on Windows, for hooks of the administrator."
    COMPUTERNAME "COMPUTERNAME" Read
        "Name under which `ship` sends the events of a Windows machine."
    NO_COLOR "NO_COLOR" Read
        "Any value but an empty one turns colours off."
    TERM "TERM" Read
        "`dumb` turns colours off."
    COLUMNS "COLUMNS" Read
        "Width of tables; by default the width of the terminal."
    RUST_MIN_STACK "RUST_MIN_STACK" Read
        "Ignored, and taken away from the hooks' environment."
    ANYHOOK_AGENT "ANYHOOK_AGENT" SetForHooks
        "Slug of the agent that called."
    ANYHOOK_EVENT "ANYHOOK_EVENT" SetForHooks
        "Canonical name of the event."
    ANYHOOK_PROJECT_DIR "ANYHOOK_PROJECT_DIR" SetForHooks
        "Root of the project."
    ANYHOOK_MANIFEST_DIR "ANYHOOK_MANIFEST_DIR" SetForHooks
        "Folder of the manifest that names the hook."
    ANYHOOK_EVALUATE "ANYHOOK_EVALUATE" SetForHooks
        "For the `command` of an evaluator: the handler's type, `prompt` or `agent`."
    USER "USER" SetForHooks
        "For hooks of the administrator: your name, from the password database."
    LOGNAME "LOGNAME" SetForHooks
        "The same as `USER`."
    PYTHONPATH "PYTHONPATH" SetForHooks
        "For your own Python hooks and the administrator's: the folder of the script. The value in the environment is not passed on; set it under `env` in the manifest."
    PYTHONSAFEPATH "PYTHONSAFEPATH" SetForHooks
        "`1` for hooks of the user and of the administrator, so that they do not import modules of the project."
    NO_CURRENT_DIRECTORY "NoDefaultCurrentDirectoryInExePath" SetForHooks
        "`1` on Windows, so that `cmd.exe` does not prefer programs of the project to those on `PATH`."
    ANYHOOK_DYNAMIC "ANYHOOK_DYNAMIC" BuildTime
        "Any value links a Linux release build dynamically, for name services other than files and DNS."
}

/// Variables with which a loader, a shell or an interpreter runs code of someone
/// else's choice before the program itself. Hooks do not inherit them: a project
/// can set them through the agent.
pub(crate) const INJECTION_VARIABLES: &[&str] = &[
    "AWKLIBPATH",
    "AWKPATH",
    "BASHOPTS",
    "BASH_ENV",
    "BASH_XTRACEFD",
    "BUN_OPTIONS",
    "CDPATH",
    "CLASSPATH",
    "CORECLR_PROFILER",
    "CORECLR_PROFILER_PATH",
    "COR_PROFILER",
    "COR_PROFILER_PATH",
    "CURL_HOME",
    "DOTNET_STARTUP_HOOKS",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "ELIXIR_ERL_OPTIONS",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "FPATH",
    "GCONV_PATH",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLIBC_TUNABLES",
    "GNUMAKEFLAGS",
    "GUILE_LOAD_PATH",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JQ_LIBRARY_PATH",
    "JULIA_LOAD_PATH",
    "LD_AUDIT",
    "LD_DEBUG",
    "LD_PRELOAD",
    "LD_PROFILE",
    "LOCPATH",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "SHELLOPTS",
    "TCLLIBPATH",
    "WGETRC",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Functions that bash has exported, settings of git that name programs, and the same
/// variables for one version of Lua.
pub(crate) const INJECTION_PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "GIT_CONFIG_",
    "LUA_CPATH_",
    "LUA_INIT_",
    "LUA_PATH_",
];

/// Whether hooks do not inherit a variable of this name.
pub fn is_injection(name: &str) -> bool {
    let mut prefixes = INJECTION_PREFIXES.iter();
    INJECTION_VARIABLES.contains(&name) || prefixes.any(|prefix| name.starts_with(prefix))
}

/// What a hook of the administrator inherits; everything else is withheld or set
/// by anyhook.
pub const MANAGED_HOOK_VARIABLES: &[&str] = &["LANG", "LANGUAGE", "NO_COLOR", "TERM", "TZ"];

/// The categories of `LANG`.
pub const MANAGED_HOOK_PREFIXES: &[&str] = &["LC_"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_listed_once_and_documented() {
        for (position, variable) in VARIABLES.iter().enumerate() {
            assert!(variable.about.ends_with('.'), "{}", variable.name);
            let rest = VARIABLES.iter().skip(position + 1);
            assert!(rest.clone().all(|other| other.name != variable.name));
        }
    }

    #[test]
    fn values_are_read() {
        let path = PATH.os().unwrap();
        assert_eq!(PATH.text().map(OsString::from), Some(path.clone()));
        assert!(PATH.is(path.to_str().unwrap()));
        assert!(all().any(|(name, value)| name == "PATH" && value == path));
        assert_eq!(by_name("ANYHOOK_NO_SUCH_VARIABLE"), None);
        assert_eq!(
            ANYHOOK_EVENT.with("x"),
            ("ANYHOOK_EVENT".to_owned(), "x".to_owned())
        );
    }

    #[test]
    fn injection_is_recognised() {
        for name in [
            "BASH_ENV",
            "LD_PRELOAD",
            "BASH_FUNC_grep%%",
            "ENV",
            "GIT_CONFIG_COUNT",
        ] {
            assert!(is_injection(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "BASH",
            "ENVIRONMENT",
            "VIRTUAL_ENV",
            "GIT_DIR",
        ] {
            assert!(!is_injection(name), "{name}");
        }
    }
}
