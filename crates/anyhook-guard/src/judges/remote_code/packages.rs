//! Packages from an address instead of a registry.

use super::programs::runs_module;
use crate::judges::Objections;
use crate::shell::Invocation;

fn is_address(text: &str) -> bool {
    let text = text.trim_start_matches("git+").trim_start_matches('@');
    let url = text
        .split_once(" @ ")
        .or_else(|| {
            text.split_once('@')
                .filter(|(_, url)| url.contains("://") || url.contains("hub:"))
        })
        .map_or(text, |(_, url)| url.trim());
    [
        "http://",
        "https://",
        "git://",
        "ssh://",
        "git@",
        "git+",
        "ftp://",
        "github:",
        "gitlab:",
        "bitbucket:",
        "gist:",
        "git+ssh://",
        "git+https://",
    ]
    .iter()
    .any(|prefix| url.starts_with(prefix) || text.starts_with(prefix))
}

/// Packages from an address instead of a registry.
pub(super) fn judge_installs(invocation: &Invocation, found: &mut Objections<'_>) {
    let texts: Vec<&str> = invocation.texts().collect();
    let has = |word: &str| texts.contains(&word);
    let first = texts
        .iter()
        .find(|text| !text.starts_with('-'))
        .copied()
        .unwrap_or_default();
    let name = invocation.name.as_str();
    // `--package=…`, `--editable=…`: the value is the package.
    let attached = || {
        texts.iter().any(|text| {
            text.split_once('=').is_some_and(|(option, value)| {
                matches!(
                    option,
                    "--package" | "-p" | "--editable" | "--from" | "--with" | "--spec"
                ) && is_address(value)
            })
        })
    };
    let names_address = || {
        let mut is_value = false;
        texts.iter().any(|text| {
            let skip = std::mem::take(&mut is_value);
            is_value = matches!(
                *text,
                "--index-url"
                    | "-i"
                    | "--extra-index-url"
                    | "--registry"
                    | "--find-links"
                    | "--proxy"
                    | "--cert"
                    | "--source"
            );
            !skip && is_address(text) && !text.starts_with("--")
        }) || attached()
    };
    let is_shorthand = || {
        texts.iter().skip(1).any(|text| {
            let mut parts = text.split('/');
            matches!((parts.next(), parts.next(), parts.next()), (Some(owner), Some(repository), None)
                if !owner.is_empty() && !repository.is_empty() && !owner.starts_with(['@', '.', '-', '~']) && !owner.contains([':', '=']) && !owner.is_empty() && owner.chars().all(|c| c.is_alphanumeric() || c == '-'))
        })
    };
    let foreign_index = || {
        texts.windows(2).any(|pair| matches!(pair, ["--index-url" | "-i" | "--extra-index-url" | "--registry" | "--source" | "--find-links" | "-f" | "--index", url] if url.contains("://") && !is_known_registry(url)))
            || texts.iter().any(|text| text.split_once('=').is_some_and(|(option, url)| matches!(option, "--index-url" | "--extra-index-url" | "--registry" | "--source" | "--index") && url.contains("://") && !is_known_registry(url)))
    };
    let installs = match name {
        "pip" | "pip3" | "pipx" | "uv" | "poetry" | "conda" | "mamba" | "pdm" | "easy_install"
        | "uvx" | "rye" => {
            (has("install")
                || has("add")
                || has("tool")
                || name == "easy_install"
                || has("run")
                || name == "uvx"
                || has("--from"))
                && (names_address() || foreign_index())
        }
        _ if name.starts_with("python") => {
            runs_module(invocation, "pip") && has("install") && (names_address() || foreign_index())
                || texts.iter().any(|text| {
                    text.starts_with("http") && text.contains("://") && name == "python"
                })
        }
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "pnpx" => {
            let adds = matches!(
                first,
                "install"
                    | "i"
                    | "add"
                    | "in"
                    | "ins"
                    | "isntall"
                    | "global"
                    | "dlx"
                    | "exec"
                    | "x"
                    | "create"
                    | "init"
            ) || matches!(name, "npx" | "bunx" | "pnpx");
            adds && (names_address()
                || foreign_index()
                || is_shorthand() && matches!(first, "install" | "i" | "add")
                || matches!(name, "npx" | "bunx")
                    && texts.iter().any(|text| text.starts_with("github:")))
        }
        "cargo" => {
            (has("install") || has("add"))
                && (has("--git") || texts.iter().any(|text| text.starts_with("--git=")))
        }
        "go" => {
            matches!(first, "run" | "install") && texts.iter().any(|text| text.contains("://"))
                || first == "run"
                    && texts
                        .iter()
                        .any(|text| text.contains('@') && text.contains('.'))
        }
        "gem" => {
            first == "install" && (names_address() || foreign_index())
                || first == "specific_install"
        }
        "bundle" => first == "add" && (has("--git") || has("--github") || has("--source")),
        "brew" => {
            matches!(first, "install" | "tap" | "cask")
                && (names_address()
                    || texts
                        .iter()
                        .any(|text| text.contains("raw.githubusercontent")))
        }
        "apt" | "apt-get" | "dnf" | "yum" | "zypper" | "rpm" | "dpkg" | "apk" | "pacman"
        | "snap" | "flatpak" => texts.iter().any(|text| is_address(text)),
        "deno" => matches!(first, "run" | "install" | "eval" | "test" | "serve") && names_address(),
        "docker" | "podman" => first == "build" && names_address(),
        "kubectl" | "oc" => {
            matches!(first, "apply" | "create")
                && texts
                    .iter()
                    .any(|text| text.starts_with("http") || text.contains("=http"))
        }
        "helm" => {
            (matches!(first, "install" | "upgrade") || first == "plugin" && has("install"))
                && texts
                    .iter()
                    .any(|text| text.starts_with("http") && text.contains("://"))
        }
        "code" | "cursor" => has("--install-extension") && names_address(),
        "composer" => {
            first == "require"
                && (names_address() || texts.iter().any(|text| text.starts_with("--repository")))
        }
        "nix" | "nix-env" | "nix-shell" | "nix-build" => {
            names_address()
                || first == "run" && texts.iter().any(|text| text.starts_with("github:"))
        }
        "msiexec" => texts.iter().any(|text| text.contains("://")),
        "bash" | "sh" => false,
        "luarocks" => first == "install" && names_address(),
        "terraform" => first == "init" && texts.iter().any(|text| text.starts_with("-from-module")),
        "add-apt-repository" | "apt-add-repository" => true,
        "asdf" => first == "plugin" && names_address(),
        "krew" => texts.iter().any(|text| text.contains("=http")),
        "cpanm" | "cpan" | "cpm" => names_address(),
        "ansible-pull" => true,
        "ansible-galaxy" => names_address(),
        "gh" => first == "extension" && (has("install") || has("upgrade")),
        "julia" => invocation.code.as_deref().is_some_and(|code| {
            code.contains("Pkg.add") && (code.contains("url=") || code.contains("url ="))
        }),
        "Rscript" | "R" => invocation
            .code
            .as_deref()
            .is_some_and(|code| code.contains("install_github") || code.contains("install_url")),
        "bunch" => false,
        _ => false,
    };
    if installs {
        found.ask_user(
            "install",
            invocation.shown(),
            "this installs from an address instead of a registry",
        );
    }
}

fn is_known_registry(url: &str) -> bool {
    [
        "https://pypi.org",
        "https://registry.npmjs.org",
        "https://registry.yarnpkg.com",
        "https://rubygems.org",
        "https://files.pythonhosted.org",
        "https://test.pypi.org",
        "https://npm.pkg.github.com",
        "https://index.crates.io",
        "https://download.pytorch.org",
    ]
    .iter()
    .any(|known| url.starts_with(known))
}
