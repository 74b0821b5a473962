//! Programs that run code from files which their command line does not name.
//!
//! One row per kind. What a row lists and exists is covered by consent; what its
//! text says is not, and the listing says so.

/// Programs that take their code from files of the folder that they run in.
pub(super) struct Runner {
    pub(super) programs: &'static [&'static str],
    /// Those that say what is run.
    pub(super) files: &'static [&'static str],
    /// What it runs besides.
    pub(super) runs: &'static str,
}

pub(super) const RUNNERS: &[Runner] = &[
    Runner {
        programs: &["npm", "pnpm", "yarn", "bun"],
        files: &[
            "package.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            "bunfig.toml",
        ],
        runs: "the scripts and packages that it runs",
    },
    Runner {
        programs: &["npx", "pnpx", "bunx", "yarnpkg", "corepack"],
        files: &["package.json", ".npmrc"],
        runs: "the package that it runs, and `node_modules`",
    },
    Runner {
        programs: &["make", "gmake", "bmake", "remake"],
        files: &["GNUmakefile", "makefile", "Makefile", "BSDmakefile"],
        runs: "what its rules run and include",
    },
    Runner {
        programs: &["just"],
        files: &["justfile", "Justfile", ".justfile"],
        runs: "what its recipes run and import",
    },
    Runner {
        programs: &["task", "go-task"],
        files: &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"],
        runs: "what its tasks run and include",
    },
    Runner {
        programs: &["mise", "asdf", "direnv", "devbox"],
        files: &[
            "mise.toml",
            ".mise.toml",
            ".tool-versions",
            ".envrc",
            "devbox.json",
        ],
        runs: "the tasks and tools that it runs",
    },
    Runner {
        programs: &["rake", "bundle", "rspec", "thor"],
        files: &["Rakefile", "Gemfile", "Gemfile.lock", ".rspec"],
        runs: "the code and gems that it loads",
    },
    Runner {
        programs: &[
            "cargo", "go", "dotnet", "swift", "zig", "stack", "cabal", "mix", "sbt",
        ],
        files: &[
            "Cargo.toml",
            "go.mod",
            "Package.swift",
            "build.zig",
            "mix.exs",
            "build.sbt",
        ],
        runs: "the code that it builds and runs",
    },
    Runner {
        programs: &["gradle", "gradlew", "mvn", "mvnw", "ant"],
        files: &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "pom.xml",
            "build.xml",
        ],
        runs: "the code that it builds and runs",
    },
    Runner {
        programs: &["java", "scala", "kotlin", "jshell"],
        files: &[],
        runs: "the classes that it loads",
    },
    Runner {
        programs: &[
            "poetry", "uv", "uvx", "pipenv", "pipx", "hatch", "pdm", "rye", "conda",
        ],
        files: &[
            "pyproject.toml",
            "uv.lock",
            "poetry.lock",
            "Pipfile",
            "setup.cfg",
        ],
        runs: "the environment and modules that it runs",
    },
    Runner {
        programs: &[
            "tox", "nox", "invoke", "inv", "fab", "pytest", "py.test", "doit", "scons", "waf",
        ],
        files: &[
            "tox.ini",
            "noxfile.py",
            "tasks.py",
            "fabfile.py",
            "conftest.py",
            "pytest.ini",
            "dodo.py",
            "SConstruct",
            "wscript",
            "pyproject.toml",
        ],
        runs: "the modules that it loads",
    },
    Runner {
        programs: &["deno"],
        files: &["deno.json", "deno.jsonc", "deno.lock", "package.json"],
        runs: "the modules that it loads",
    },
    Runner {
        programs: &[
            "jest", "vitest", "mocha", "eslint", "prettier", "tsc", "webpack", "vite", "grunt",
            "gulp", "turbo", "nx", "lerna",
        ],
        files: &[
            "package.json",
            "Gruntfile.js",
            "gulpfile.js",
            "turbo.json",
            "nx.json",
        ],
        runs: "its configuration and the modules that it loads",
    },
    Runner {
        programs: &["composer", "phpunit", "artisan", "wp"],
        files: &["composer.json", "composer.lock", "phpunit.xml"],
        runs: "the code that it loads",
    },
    Runner {
        programs: &["pre-commit", "prek", "lefthook", "husky", "overcommit"],
        files: &[
            ".pre-commit-config.yaml",
            "lefthook.yml",
            "lefthook.yaml",
            ".overcommit.yml",
        ],
        runs: "the hooks that it runs",
    },
    Runner {
        programs: &[
            "docker",
            "podman",
            "nerdctl",
            "docker-compose",
            "buildah",
            "vagrant",
        ],
        files: &[
            "Dockerfile",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.yml",
            "compose.yaml",
            "Vagrantfile",
        ],
        runs: "the image that it runs",
    },
    Runner {
        programs: &[
            "nix",
            "nix-shell",
            "nix-build",
            "guix",
            "bazel",
            "bazelisk",
            "buck",
            "pants",
            "earthly",
            "dagger",
        ],
        files: &[
            "flake.nix",
            "flake.lock",
            "shell.nix",
            "default.nix",
            "WORKSPACE",
            "MODULE.bazel",
            "BUILD",
            "pants.toml",
            "Earthfile",
        ],
        runs: "what it builds and runs",
    },
    Runner {
        programs: &[
            "terraform",
            "ansible",
            "ansible-playbook",
            "helm",
            "kubectl",
            "cmake",
            "ctest",
            "ninja",
            "meson",
        ],
        files: &["CMakeLists.txt", "build.ninja", "meson.build"],
        runs: "what its files make it run",
    },
    Runner {
        programs: &["ssh", "kubectl-exec", "rsh", "mosh"],
        files: &[],
        runs: "what runs on the other machine",
    },
    Runner {
        programs: &["run-parts", "bats", "shellspec", "prove", "rcup"],
        files: &[],
        runs: "the files that it finds in a folder",
    },
    Runner {
        programs: &["xargs", "parallel", "entr", "watchexec"],
        files: &[],
        runs: "the files that its input names",
    },
    Runner {
        programs: &[
            "tmux",
            "screen",
            "at",
            "batch",
            "systemd-run",
            "crontab",
            "su",
            "runuser",
            "expect",
            "vim",
            "nvim",
            "emacs",
            "ex",
        ],
        files: &[],
        runs: "what it starts",
    },
];

/// How an interpreter finds a file by a name that is not quite its path.
pub(super) struct ModuleRule {
    pub(super) programs: &'static [&'static str],
    /// What it appends to a name.
    pub(super) suffixes: &'static [&'static str],
    /// What its code can load without naming a path, if anything.
    pub(super) loads: Option<&'static str>,
    /// An option that prevents that.
    pub(super) isolation: &'static [char],
}

pub(super) const MODULE_RULES: &[ModuleRule] = &[
    ModuleRule {
        programs: &["python", "pypy", "ipython"],
        suffixes: &["/__main__.py", "/__init__.py", ".py"],
        loads: Some("modules beside it, which it imports before those of Python (not with `-P`)"),
        isolation: &['I', 'P'],
    },
    ModuleRule {
        programs: &["node", "nodejs", "tsx", "ts-node", "bun", "deno"],
        suffixes: &[
            ".js",
            ".json",
            ".node",
            ".cjs",
            ".mjs",
            ".ts",
            "/package.json",
            "/index.js",
            "/index.json",
            "/index.node",
            "/index.ts",
        ],
        loads: Some("the modules that it loads, in `node_modules` and elsewhere"),
        isolation: &[],
    },
    ModuleRule {
        programs: &["ruby"],
        suffixes: &[".rb"],
        loads: None,
        isolation: &[],
    },
    ModuleRule {
        programs: &["perl"],
        suffixes: &[".pm", ".pl"],
        loads: None,
        isolation: &[],
    },
];

/// Words in inline code with which it loads files.
pub(super) const LOADING_WORDS: [&str; 11] = [
    "import", "require", "load", "include", "use ", "do ", "exec", "system", "spawn", "open",
    "source",
];

/// Options of any program that are followed by the folder it works in.
pub(super) const FOLDER_OPTIONS: [&str; 9] = [
    "-C",
    "-D",
    "-d",
    "--chdir",
    "--cwd",
    "--dir",
    "--directory",
    "--prefix",
    "--manifest-path",
];

/// Options with which an interpreter gets a folder of modules.
pub(super) const MODULE_FOLDER_OPTIONS: [&str; 3] = ["-I", "--include", "--include-path"];

/// Variables by which a program finds other programs, libraries, modules or
/// start-up files. A name that ends with `_` stands for all that begin so.
const SEARCH_VARIABLES: [&str; 43] = [
    "PATH",
    "BASH_ENV",
    "ENV",
    "CDPATH",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "FPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONPLATLIBDIR",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "VIRTUAL_ENV",
    "NODE_PATH",
    "NODE_OPTIONS",
    "NPM_",
    "npm_",
    "PERL5LIB",
    "PERLLIB",
    "PERL5OPT",
    "PERL5DB",
    "RUBYLIB",
    "RUBYOPT",
    "GEM_",
    "BUNDLE_",
    "CLASSPATH",
    "JAVA_",
    "JDK_",
    "LUA_",
    "PHPRC",
    "PHP_",
    "LD_",
    "DYLD_",
    "GIT_",
    "GCONV_PATH",
    "HOME",
];

/// Whether this variable changes what a program loads.
pub(super) fn is_search_variable(name: &str) -> bool {
    let mut known = SEARCH_VARIABLES.iter();
    known.any(|known| *known == name || (known.ends_with('_') && name.starts_with(known)))
}
