//! `secrets`: reading key files, dumping the environment, writing and sending secrets.

use super::Objections;
use super::access::{Access, shell_files};
use super::secret_values::known_secret;
use crate::input::{FileUse, GuardInput};
use crate::paths::{glob_matches, normalize, path_matches};
use crate::shell::{
    Invocation, InvocationPlace, MAX_COMMAND_BYTES, RedirectKind, ResolvedWord, ShellAnalysis,
    UNKNOWN, first_operand,
};

/// Names of files that hold secrets.
const SECRET_NAMES: &[&str] = &[
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".dev.vars",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_ecdsa_sk",
    "id_ed25519_sk",
    "identity",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    "*.kdb",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".dockercfg",
    ".htpasswd",
    "credentials.json",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "secrets.yml",
    "secrets.yaml",
    "secrets.json",
    "secrets.toml",
    "secret.yml",
    "secret.yaml",
    ".vault-token",
    ".vault_pass",
    ".vault-pass",
    "vault_pass.txt",
    "master.key",
    "*.asc.key",
    ".boto",
    ".s3cfg",
    "terraform.tfstate",
    "*.tfstate",
    "*.tfstate.backup",
    "*.tfvars.secret",
    "shadow",
    "gshadow",
    "sudoers",
    ".terraformrc",
    "credentials.tfrc.json",
    ".cargo-credentials",
    "key.pem",
    "privkey.pem",
    "*.ovpn",
    "kubeconfig",
    "login.keychain-db",
    "*.keychain",
    "*.agekey",
    "*.gpg.key",
    "keys.txt.age",
    "Login Data",
    "Cookies",
    "logins.json",
    "key4.db",
    "wallet.dat",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".mysql_history",
    ".python_history",
    ".node_repl_history",
    ".irb_history",
    "auth.json",
    ".credentials.json",
    "ssh_host_*_key",
    "NuGet.Config",
    "hosts.yml.token",
    "application_default_credentials.json",
    "access_tokens.db",
    "credentials.db",
    "firebase-adminsdk*.json",
    "google-services-key.json",
    "wp-config.php",
    "database.yml.key",
    "secrets.yml.key",
    "*.pkcs12",
    "*.p8",
    "*.jwk",
];

/// Parts of a path that make everything below secret.
const SECRET_PATHS: &[&str] = &[
    ".aws/credentials",
    ".aws/sso/cache",
    ".aws/cli/cache",
    ".azure/accessTokens.json",
    ".azure/msal_token_cache.json",
    ".azure/service_principal_entries.json",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/glab-cli",
    ".config/doctl",
    ".kube/config",
    ".docker/config.json",
    ".gnupg",
    ".ssh",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/op",
    ".config/pypoetry/auth.toml",
    ".bundle/config",
    "etc/kubernetes",
    "etc/rancher/k3s/k3s.yaml",
    ".config/containers/auth.json",
    ".config/sops/age/keys.txt",
    ".local/share/keyrings",
    "Library/Keychains",
    ".mozilla/firefox",
    ".config/google-chrome",
    ".config/chromium",
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "etc/ssl/private",
    "etc/sudoers",
    ".config/rclone/rclone.conf",
    ".config/netlify",
    ".config/heroku",
    ".config/fly",
    ".fly/config.yml",
    ".netlify/config.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".terraform.d/credentials.tfrc.json",
    ".subversion/auth",
    "run/secrets",
    "var/run/secrets",
    ".config/stripe",
    ".config/configstore/firebase-tools.json",
    ".oci/config",
    ".bluemix",
    ".wrangler/config",
    ".vault-token",
    ".config/hcloud",
    ".config/railway",
    ".railway/config.json",
    ".config/github-copilot",
    ".databrickscfg",
    ".snowflake",
    ".snowsql/config",
    ".jupyter/jupyter_server_config.json",
    ".config/pip/pip.conf.secret",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".kaggle/kaggle.json",
    ".config/anthropic",
    ".openai",
];

/// Files below a home folder that a pattern may be aimed at.
const WELL_KNOWN_SECRETS: &[&str] = &[
    ".ssh/id_rsa",
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".config/gh/hosts.yml",
    ".gnupg/secring.gpg",
];

/// Ends of names that say that there is no secret.
const HARMLESS_MARKS: &[&str] = &[
    "example", "sample", "template", "dist", "defaults", "schema", "md", "pub", "tpl", "tmpl",
    "j2", "erb", "d.ts", "ts", "js", "rs", "go", "c", "h",
];

struct SecretFiles<'i> {
    more: Vec<String>,
    allowed: Vec<String>,
    project: Option<&'i str>,
    home: Option<&'i str>,
}

impl SecretFiles<'_> {
    fn is_secret(&self, path: &str) -> bool {
        if self
            .allowed
            .iter()
            .any(|pattern| path_matches(pattern, path, self.project, self.home))
        {
            return false;
        }
        if self
            .more
            .iter()
            .any(|pattern| path_matches(pattern, path, self.project, self.home))
        {
            return true;
        }
        if path.starts_with("/proc/") && path.ends_with("/environ") {
            return true;
        }
        let name = path
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default();
        if is_harmless_name(name) {
            return false;
        }
        let lower = name.to_ascii_lowercase();
        let in_folder =
            |part: &str| path.contains(&format!("/{part}/")) || path.ends_with(&format!("/{part}"));
        if in_folder(".ssh") {
            return !matches!(
                lower.as_str(),
                "known_hosts" | "known_hosts.old" | "config" | "authorized_keys" | ".ssh"
            );
        }
        if SECRET_PATHS
            .iter()
            .filter(|part| **part != ".ssh")
            .any(|part| in_folder(part))
        {
            return true;
        }
        let is_key = |pattern: &str| glob_matches(&pattern.to_ascii_lowercase(), &lower);
        if !SECRET_NAMES.iter().any(|pattern| is_key(pattern)) {
            return false;
        }
        match lower.as_str() {
            // These names are only telling in certain places.
            "shadow" | "gshadow" | "sudoers" => path.starts_with("/etc/"),
            "identity" | "cookies" => false,
            "nuget.config" => path.contains("/.nuget/") || path.contains("/.config/"),
            "auth.json" => {
                !self
                    .project
                    .is_some_and(|project| path.starts_with(project))
                    || path.contains("/.")
            }
            "credentials.json" | "secrets.json" | "logins.json" => true,
            _ if lower.ends_with(".pem") => {
                !(lower.contains("cert")
                    || lower.contains("chain")
                    || lower.contains("ca.")
                    || lower.contains("ca-")
                    || lower.contains("public")
                    || lower.contains("pub"))
            }
            _ if lower.ends_with(".env") => lower == ".env" || !lower.starts_with("readme"),
            _ => true,
        }
    }

    /// Whether a pattern with wildcards in its folders matches a well-known secret.
    fn pattern_matches_secret(&self, word: &ResolvedWord, path: &str) -> bool {
        let Some((folder, _)) = path.rsplit_once('/') else {
            return false;
        };
        if !word.is_pattern || !folder.contains(['*', '?', '[']) {
            return false;
        }
        let homes = [self.home.unwrap_or("/home/user"), "/root", "/home/user"];
        homes.iter().any(|home| {
            WELL_KNOWN_SECRETS
                .iter()
                .any(|secret| glob_matches(path, &format!("{home}/{secret}")))
        })
    }

    /// Whether a pattern of a search or of the shell names secret files.
    fn pattern_names_secret(&self, pattern: &str) -> bool {
        let name = pattern
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_start_matches('!');
        let bare = name.replace(['*', '?', '[', ']'], "");
        let is_env =
            name.starts_with('.') && name.len() > 2 && name != ".*" && glob_matches(name, ".env");
        if is_env {
            return true;
        }
        if bare.len() < 3 || is_harmless_name(name) {
            return false;
        }
        for option in expand_alternatives(name) {
            let folder = pattern.rsplit_once('/').map_or("", |(folder, _)| folder);
            let is_named = [
                ".env",
                ".env.local",
                ".env.production",
                "id_rsa",
                "id_ed25519",
                "server.key",
                "server.pem",
                ".netrc",
                ".npmrc",
                ".pgpass",
                ".git-credentials",
                "credentials.json",
                "secrets.yml",
                "secrets.yaml",
                ".vault-token",
            ]
            .iter()
            .any(|known| {
                glob_matches(&option, known)
                    && (option.contains(known.trim_start_matches('.').get(..2).unwrap_or_default())
                        || option == *known)
            });
            let path = format!(
                "/{}/{}",
                folder.trim_matches(['*', '/']),
                option.replace("**", "").replace('*', "x")
            );
            if is_named
                || self.is_secret(&path) && !option.starts_with("*.")
                || option == "*.pem"
                || option == "*.key"
                || option.starts_with("*.env")
            {
                return true;
            }
        }
        false
    }
}

fn expand_alternatives(name: &str) -> Vec<String> {
    let (Some(open), Some(close)) = (name.find('{'), name.find('}')) else {
        return vec![name.to_owned()];
    };
    let (Some(before), Some(inside), Some(after)) = (
        name.get(..open),
        name.get(open + 1..close),
        name.get(close + 1..),
    ) else {
        return vec![name.to_owned()];
    };
    inside
        .split(',')
        .take(16)
        .map(|part| format!("{before}{part}{after}"))
        .collect()
}

fn is_harmless_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower
        .rsplit(['.', '-', '_'])
        .take(2)
        .enumerate()
        .any(|(index, part)| {
            HARMLESS_MARKS.contains(&part)
                && (index == 0 || matches!(part, "example" | "sample" | "template"))
        })
        || lower.starts_with("example.")
        || lower.starts_with("sample.")
}

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    let secret_files = SecretFiles {
        more: found.options.all("--path").map(str::to_owned).collect(),
        allowed: found.options.all("--allow").map(str::to_owned).collect(),
        project: input.project.as_deref(),
        home: input.home.as_deref(),
    };
    for file in input.files() {
        match file.file_use {
            FileUse::Read if secret_files.is_secret(&file.path) => {
                found.deny(
                    "read",
                    &file.path,
                    "this file holds secrets; ask the user for what you need of it",
                );
            }
            FileUse::Search => {
                let glob_hits = file
                    .glob
                    .as_deref()
                    .is_some_and(|glob| secret_files.pattern_names_secret(glob));
                let is_find = input.is_tool("find");
                if secret_files.is_secret(&file.path)
                    || is_secret_folder(&file.path) && !is_find
                    || glob_hits && !is_find
                {
                    found.deny(
                        "read",
                        &file.path,
                        "this searches in files that hold secrets",
                    );
                } else if glob_hits {
                    found.ask_user(
                        "read",
                        file.glob.clone().unwrap_or_default(),
                        "this lists files that hold secrets",
                    );
                }
            }
            FileUse::Write => {
                if let Some(what) = known_secret(&file.content) {
                    found.deny("write", &file.path, format!("this writes {what} into a file; read it from the environment or a secret store"));
                }
            }
            _ => {}
        }
    }
    let prompt = input
        .event
        .tool_input()
        .filter(|_| input.fetched_url().is_some())
        .and_then(|tool_input| tool_input.get("prompt"))
        .and_then(serde_json::Value::as_str);
    if let Some(what) = prompt.and_then(known_secret) {
        found.deny("send", "", format!("this sends {what}"));
    }
    if let Some(url) = input.fetched_url() {
        if let Some(what) = known_secret(url) {
            found.deny("send", "", format!("this sends {what} in a URL"));
        }
        if let Some(path) = url.strip_prefix("file://")
            && secret_files.is_secret(path)
        {
            found.deny("read", path, "this file holds secrets");
        }
    }
    let mut sourced = false;
    for analysis in input.analyses() {
        for (index, invocation) in analysis.invocations.iter().enumerate() {
            if is_filtered_dump(analysis, index) {
                continue;
            }
            judge_invocation(invocation, &secret_files, &mut sourced, found);
            judge_listed(analysis, invocation, &secret_files, found);
            judge_variables(analysis, index, invocation, found);
            if found.is_settled() {
                return;
            }
        }
    }
    // What is longer was not read, and is asked about.
    let commands = input.commands().into_iter();
    for command in commands.filter(|command| command.len() <= MAX_COMMAND_BYTES) {
        if let Some(what) = known_secret(&command) {
            found.deny(
                "write",
                "",
                format!(
                    "this command contains {what}; read it from the environment or a secret store"
                ),
            );
        }
    }
    found.ask_if_incomplete(input);
}

/// Variables whose names say that they are secret, where they are printed or put
/// into a URL. A header of a request is the place for them, and no objection.
fn judge_variables(
    analysis: &ShellAnalysis,
    index: usize,
    invocation: &Invocation,
    found: &mut Objections<'_>,
) {
    let name = invocation.name.to_ascii_lowercase();
    let is_printing = matches!(
        name.as_str(),
        "echo" | "printf" | "cat" | "tee" | "xxd" | "base64" | "od" | "write-output" | "write-host"
    );
    let is_sending = matches!(name.as_str(), "curl" | "wget" | "http" | "xh");
    if !is_printing && !is_sending {
        return;
    }
    // `echo "$TOKEN" | docker login --password-stdin` shows nothing.
    let is_password_input = analysis.invocations.iter().any(|reader| {
        reader.input_from.contains(&index)
            && reader
                .texts()
                .any(|text| text.contains("-stdin") || text == "login" || text == "--with-token")
    });
    if is_password_input {
        return;
    }
    let writes_file = invocation
        .redirects
        .iter()
        .any(|redirect| matches!(redirect.kind, RedirectKind::Output | RedirectKind::Append));
    // The text of a here-document that goes into a file is not shown.
    let input = invocation
        .redirects
        .iter()
        .filter(|redirect| redirect.kind == RedirectKind::Text && !writes_file)
        .map(|redirect| &redirect.target);
    for word in invocation.arguments().iter().chain(input) {
        let Some(variable) = word
            .variables
            .iter()
            .find(|variable| is_secret_variable(variable))
        else {
            continue;
        };
        if is_printing {
            found.ask_user(
                "print",
                format!("${variable}"),
                "this prints a variable that holds a secret",
            );
        } else if word.text.contains("://") && word.text.contains('?') {
            found.ask_user(
                "send",
                format!("${variable}"),
                "this sends a variable that holds a secret in a URL",
            );
        }
    }
}

fn is_secret_variable(name: &str) -> bool {
    if name.is_empty() || name.chars().any(|letter| letter.is_ascii_lowercase()) {
        return false;
    }
    let parts: Vec<&str> = name.split('_').collect();
    let has = |wanted: &[&str]| parts.iter().any(|part| wanted.contains(part));
    has(&[
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "CREDENTIALS",
        "PAT",
        "PGPASSWORD",
        "SECRETS",
        "PASS",
    ]) || name.ends_with("_KEY")
        && has(&[
            "API",
            "ACCESS",
            "SECRET",
            "PRIVATE",
            "ENCRYPTION",
            "SIGNING",
            "MASTER",
            "AUTH",
            "SERVICE",
            "DEPLOY",
        ])
        || name.ends_with("_KEY_BASE")
        || matches!(
            name,
            "DATABASE_URL"
                | "REDIS_URL"
                | "MONGO_URL"
                | "MONGODB_URI"
                | "API_KEY"
                | "PGPASSWORD"
                | "KUBECONFIG_DATA"
                | "GH_TOKEN"
        )
}

fn judge_invocation(
    invocation: &Invocation,
    files: &SecretFiles<'_>,
    sourced: &mut bool,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let name = invocation.name.as_str();
    if invocation.shows_help() {
        return;
    }
    let texts: Vec<&str> = invocation.texts().collect();
    judge_dump(invocation, &texts, *sourced, found);
    judge_stores(invocation, &texts, found);
    if let Some(code) = &invocation.code {
        judge_code(code, invocation, found);
    }
    let is_away = invocation.place == InvocationPlace::Container;
    for file in shell_files(invocation) {
        if !matches!(file.access, Access::Read | Access::Search) {
            continue;
        }
        let path = match &file.path {
            Some(path) => path.clone(),
            None => format!("/{UNKNOWN}/{}", file.word.text),
        };
        let is_pattern = file.word.is_pattern || path.contains(UNKNOWN);
        let last = path.rsplit('/').next().unwrap_or_default();
        let hits = if files.pattern_matches_secret(&file.word, &path) {
            true
        } else if last.contains(['*', '?', '[']) && is_pattern {
            files.pattern_names_secret(&path)
                || path
                    .rsplit_once('/')
                    .is_some_and(|(folder, _)| is_secret_folder(folder))
                    && !path.contains("/.ssh/")
                || files.is_secret(&path.replace(['*', '?'], "x")) && path.contains("/.ssh/")
        } else {
            files.is_secret(&path)
        };
        let packs = matches!(
            name,
            "tar" | "zip" | "rsync" | "scp" | "cp" | "7z" | "bsdtar"
        );
        // `find ~/.ssh -exec cat {} +` reads everything in it.
        let is_listed = invocation
            .via
            .iter()
            .any(|via| matches!(via.as_str(), "find" | "xargs" | "fd"));
        let is_folder =
            (file.access == Access::Search || packs || is_listed) && is_secret_folder(&path);
        if (hits || is_folder) && !is_exempt(invocation, &file.word.text) {
            if matches!(name, "source" | ".") {
                // Loading it into the shell shows nothing; what follows may.
                *sourced = true;
                continue;
            }
            if file.access == Access::Search
                && !is_folder
                && invocation.has_option("lLqc", &["--files-with-matches", "--quiet", "--count"])
            {
                continue;
            }
            let reason = "this file holds secrets; ask the user for what you need of it";
            if is_away {
                // A container may have nothing but test data.
                found.ask_user("read", shown(), reason);
            } else {
                found.deny("read", shown(), reason);
            }
        }
    }
    // `find -name .env -exec cat {} +`, `xargs cat` below a folder.
    if invocation
        .via
        .iter()
        .any(|via| matches!(via.as_str(), "find" | "xargs" | "fd"))
        && !is_away
    {
        let reads_unknown = shell_files(invocation)
            .iter()
            .any(|file| file.access == Access::Read && file.word.has_unknown());
        if reads_unknown && *sourced {
            found.ask_user("read", shown(), "this may read files that hold secrets");
        }
    }
    if matches!(
        name,
        "find" | "fd" | "locate" | "git" | "ls" | "rg" | "grep"
    ) {
        let names_secret = texts.windows(2).any(|pair| matches!(pair, ["-name" | "-iname" | "-path" | "-g" | "--glob" | "--include", pattern] if files.pattern_names_secret(pattern) || glob_matches(pattern, ".env")&& pattern.len() > 2 && pattern.starts_with('.')))
            || texts.iter().any(|text| text.strip_prefix("--include=").or_else(|| text.strip_prefix("--glob=")).is_some_and(|pattern| files.pattern_names_secret(pattern)));
        let looks_for_secrets = matches!(name, "fd" | "locate")
            && invocation
                .operands()
                .any(|word| files.pattern_names_secret(word.text.trim_matches(['^', '$'])));
        if looks_for_secrets {
            *sourced = true;
        }
        if names_secret {
            *sourced = true;
            if matches!(name, "rg" | "grep")
                && !invocation.has_option("lLc", &["--files-with-matches"])
            {
                found.deny("read", shown(), "this searches in files that hold secrets");
            }
        }
    }
    // Files that are sent or packed by programs of any kind.
    if matches!(
        name,
        "docker"
            | "kubectl"
            | "gh"
            | "vercel"
            | "heroku"
            | "gist"
            | "pastebinit"
            | "mailx"
            | "mutt"
    ) && !is_away
    {
        for text in texts.iter().filter(|text| !text.contains([' ', '\n'])) {
            let path = text.rsplit(['=', '@']).next().unwrap_or_default();
            if let Some(path) = normalize(invocation.cwd.as_deref(), path)
                && files.is_secret(&path)
                && (!matches!(name, "docker" | "kubectl" | "vercel" | "heroku")
                    || texts.first() == Some(&"cp"))
                && !texts.contains(&"secret")
            {
                found.deny("send", shown(), "this sends a file that holds secrets");
            }
        }
    }
}

/// Folders in which nearly everything is secret.
fn is_secret_folder(path: &str) -> bool {
    [
        "/.ssh",
        "/.aws",
        "/.azure",
        "/.config/gh",
        "/.docker",
        "/.gnupg",
        "/.kube",
        "/.password-store",
        "/etc/ssl/private",
    ]
    .iter()
    .any(|folder| path.trim_end_matches('/').ends_with(folder))
}

/// Files that are only known at run time, from a listing that looks for secret ones:
/// `cat $(find . -name .env)`, `ls -a | grep env$ | xargs cat`.
fn judge_listed(
    analysis: &ShellAnalysis,
    invocation: &Invocation,
    files: &SecretFiles<'_>,
    found: &mut Objections<'_>,
) {
    let sources: Vec<usize> = shell_files(invocation)
        .into_iter()
        .filter(|file| file.access == Access::Read && file.word.has_unknown())
        .flat_map(|file| file.word.sources)
        .flatten()
        .collect();
    if sources.is_empty() {
        return;
    }
    let looks_for_secrets = analysis.upstream(sources).iter().any(|source| {
        let texts: Vec<&str> = source.texts().collect();
        match source.name.as_str() {
            "find" | "fd" | "fdfind" | "ls" | "locate" => {
                texts.iter().any(|text| files.pattern_names_secret(text))
            }
            "grep" | "egrep" | "rg" => texts
                .iter()
                .find(|text| !text.starts_with('-'))
                .is_some_and(|pattern| {
                    let plain = pattern.trim_matches(['^', '$']).replace('\\', "");
                    matches!(plain.as_str(), "env" | ".env") || files.pattern_names_secret(&plain)
                }),
            _ => false,
        }
    });
    if looks_for_secrets {
        found.ask_user(
            "read",
            invocation.shown(),
            "this may read files that hold secrets",
        );
    }
}

/// Uses of key files that show nothing.
fn is_exempt(invocation: &Invocation, text: &str) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    let follows = |options: &[&str]| {
        texts.windows(2).any(
            |pair| matches!(pair, [option, value] if options.contains(option) && *value == text),
        )
    };
    match invocation.name.as_str() {
        "ssh" | "scp" | "sftp" | "rsync" | "ssh-add" => {
            follows(&["-i", "-F", "-e"]) || invocation.name == "ssh-add"
        }
        "ssh-keygen" => !texts.contains(&"-e") && !texts.contains(&"-p") && !texts.contains(&"-y"),
        "curl" | "wget" | "openssl" => {
            follows(&[
                "--key",
                "--cert",
                "-E",
                "--cacert",
                "-key",
                "-inkey",
                "-signkey",
                "-CAkey",
                "-keyout",
                "--netrc-file",
                "-out",
            ]) || texts.first() == Some(&"x509")
                || texts.contains(&"-pubout")
                || texts.contains(&"-noout") && !texts.contains(&"-text")
        }
        "git" => {
            texts.first() == Some(&"log")
                && !invocation.has_option("pu", &["--patch"])
                && !texts.contains(&"-p")
                || matches!(texts.first(), Some(&"check-ignore" | &"rm" | &"mv"))
                || texts.contains(&"--stat")
                || texts.contains(&"--name-only")
        }
        "docker" | "podman" => texts.first() != Some(&"cp"),
        "dotenv" => true,
        "cp" | "ln" | "install" => false,
        "python" | "node" | "python3" => true,
        "touch" => true,
        "export" => true,
        "jq" | "yq" => follows(&["-f", "--arg"]),
        "gpg" => texts.iter().any(|option| {
            matches!(
                *option,
                "--import" | "-c" | "--symmetric" | "-e" | "--encrypt" | "--list-keys" | "--verify"
            )
        }),
        "comm" | "diff" | "cmp" => false,
        _ => false,
    }
}

/// Variables that hold no secrets, and ends of such names.
const HARMLESS_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC",
    "SHELL",
    "USER",
    "TERM",
    "NODE_ENV",
    "NODE",
    "PYTHON",
    "VIRTUAL_ENV",
    "JAVA",
    "GO",
    "CARGO",
    "RUST",
    "DISPLAY",
    "XDG",
    "EDITOR",
    "PAGER",
    "TZ",
    "RAILS_ENV",
    "GOPATH",
    "GOROOT",
    "CONDA",
    "NVM",
    "HOSTNAME",
    "PWD",
    "CI",
];

/// `env | grep PATH`: only variables that hold no secrets are printed.
fn is_filtered_dump(analysis: &ShellAnalysis, index: usize) -> bool {
    let is_dump = analysis.invocations.get(index).is_some_and(|invocation| {
        matches!(invocation.name.as_str(), "env" | "printenv")
            && invocation.words.len() == 1
            && invocation.redirects.is_empty()
    });
    let reader = analysis
        .invocations
        .get(index + 1)
        .filter(|reader| is_dump && reader.input_from == (index..index + 1));
    let counts = |reader: &Invocation| {
        reader.name == "wc" || reader.name == "grep" && reader.has_option("cq", &["--count"])
    };
    if reader.is_some_and(counts) {
        return true;
    }
    let Some(reader) = reader.filter(|reader| matches!(reader.name.as_str(), "grep" | "rg")) else {
        return false;
    };
    let mut patterns = reader.operands();
    let (Some(pattern), None) = (patterns.next(), patterns.next()) else {
        return false;
    };
    let name = pattern.text.trim_matches(['^', '=', '$', '_', '.', '*']);
    // `^NAME=` matches one variable only.
    let is_whole_name = pattern.text.starts_with('^')
        && pattern.text.contains('=')
        && name
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
        && !is_secret_variable(name);
    let is_harmless = is_whole_name
        || HARMLESS_VARIABLES.contains(&name)
        || ["_HOME", "_PATH", "PATH", "_VERSION", "_ENV"]
            .iter()
            .any(|end| name.ends_with(end) && !is_secret_variable(name));
    is_harmless && !reader.has_option("viefPE", &["--invert-match", "--regexp", "--file"])
}

/// `env` without a program: everything that is no option is an assignment.
fn is_env_dump(invocation: &Invocation) -> bool {
    let values = ["-u", "--unset", "-C", "--chdir"];
    let start = first_operand(&invocation.words, 1, &values);
    let mut rest = invocation.words.iter().skip(start);
    rest.all(|word| word.text.contains('='))
}

fn judge_dump(invocation: &Invocation, texts: &[&str], sourced: bool, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let reason = "this prints the whole environment, with the secrets in it; print the variable that you need";
    let mut operands = invocation.operands().filter(|word| word.text != "--");
    let _ = sourced;
    match invocation.name.as_str() {
        "env" if is_env_dump(invocation) => {
            found.deny("environment", shown(), reason);
        }
        "printenv" => match operands.next() {
            None => found.deny("environment", shown(), reason),
            Some(word) if is_secret_variable(&word.text) => {
                found.deny(
                    "print",
                    shown(),
                    "this prints a variable that holds a secret",
                );
            }
            Some(_) => {}
        },
        "export" | "declare" | "typeset" | "readonly" => {
            let prints = invocation.has_option("p", &[]) && operands.next().is_none();
            let is_bare = texts.is_empty()
                || invocation.name != "export"
                    && texts
                        .iter()
                        .all(|text| *text == "-x" || *text == "-xp" || *text == "-px");
            let names_secret = invocation.has_option("p", &[])
                && invocation
                    .operands()
                    .any(|word| is_secret_variable(&word.text));
            if prints || is_bare {
                found.deny("environment", shown(), reason);
            } else if names_secret {
                found.deny(
                    "print",
                    shown(),
                    "this prints a variable that holds a secret",
                );
            }
        }
        "set" if texts.is_empty() => found.deny("environment", shown(), reason),
        "compgen" if invocation.has_option("v", &[]) || invocation.has_option("e", &[]) => {
            found.ask_user("environment", shown(), "this lists the environment");
        }
        "ps" if texts.iter().any(|text| {
            *text == "e"
                || text.starts_with("aux") && text.contains('e')
                || text.contains("eww")
                || *text == "auxe"
        }) =>
        {
            found.ask_user(
                "environment",
                shown(),
                "this prints the environment of processes",
            );
        }
        "docker" | "podman"
            if texts.first() == Some(&"inspect")
                && texts.iter().any(|text| text.contains(".Env")) =>
        {
            found.ask_user(
                "environment",
                shown(),
                "this prints the environment of a container",
            );
        }
        "systemctl" if texts.contains(&"show-environment") => {
            found.deny("environment", shown(), reason);
        }
        "launchctl" if texts.contains(&"export") => found.deny("environment", shown(), reason),
        "tmux"
            if texts
                .iter()
                .any(|text| matches!(*text, "show-environment" | "showenv")) =>
        {
            found.ask_user("environment", shown(), "this prints the environment");
        }
        "launchctl"
            if texts.first() == Some(&"getenv")
                && texts.iter().any(|text| is_secret_variable(text)) =>
        {
            found.deny(
                "print",
                shown(),
                "this prints a variable that holds a secret",
            );
        }
        "jq" | "yq"
            if texts.iter().any(|text| {
                ["$ENV.", "env.", "strenv("].iter().any(|mark| {
                    text.split(mark)
                        .skip(1)
                        .any(|rest| is_secret_variable(leading_name(rest)))
                })
            }) =>
        {
            found.ask_user(
                "print",
                shown(),
                "this prints a variable that holds a secret",
            );
        }
        "sops"
            if texts.first() == Some(&"exec-env")
                && texts.iter().skip(2).any(|text| {
                    matches!(
                        text.split_whitespace().next(),
                        Some("env" | "printenv" | "set")
                    )
                }) =>
        {
            found.deny("environment", shown(), reason);
        }
        "jq" if texts.iter().any(|text| {
            text.trim() == "env" || text.contains("$ENV") && !text.contains("$ENV.")
        }) =>
        {
            found.deny("environment", shown(), reason);
        }
        "awk" | "gawk" | "mawk" if texts.iter().any(|text| text.contains("in ENVIRON")) => {
            found.deny("environment", shown(), reason);
        }
        "awk" | "gawk" | "mawk" => {
            let names = texts
                .iter()
                .flat_map(|text| text.split("ENVIRON[\"").skip(1));
            if names.map(leading_name).any(is_secret_variable) {
                found.deny("environment", shown(), reason);
            }
        }
        _ => {}
    }
}

/// The name of a variable at the start of a text.
fn leading_name(text: &str) -> &str {
    let end = text
        .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Whole dumps of the environment by an interpreter's code.
fn judge_code(code: &str, invocation: &Invocation, found: &mut Objections<'_>) {
    if crate::shell::SHELLS.contains(&invocation.name.as_str()) {
        return;
    }
    for (mark, allowed) in [
        (
            "os.environ",
            &["[", ".get(", ".setdefault(", ".pop(", ".update("][..],
        ),
        ("process.env", &[".", "["]),
        ("ENV", &["[", ".fetch", ".key?", "IRON["]),
        ("$ENV{", &["", "'", "\""]),
        ("dotenv').config()", &[";", ""]),
        ("dotenv\").config()", &[";", ""]),
        ("%ENV", &[]),
        ("os.getenv(", &["'", "\"", ")"]),
        ("Deno.env.get(", &["'", "\""]),
        ("getenv(", &["'", "\""]),
        ("print(environ", &["[", ".get("]),
        ("getenv()", &[]),
        ("$_ENV", &["["]),
        ("Deno.env.toObject", &[]),
        ("System.getenv()", &[]),
    ] {
        for (at, _) in code.match_indices(mark) {
            let before = code.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|letter| {
                letter.is_alphanumeric()
                    || letter == '_'
                    || letter == '$' && mark == "ENV"
                    || letter == '%' && mark == "ENV"
                    || letter == '.' && mark == "getenv("
            }) {
                continue;
            }
            let rest = code.get(at + mark.len()..).unwrap_or_default();
            // Only whether a variable exists.
            let start = code.get(..at).unwrap_or_default().trim_end();
            if start.ends_with("' in")
                || start.ends_with("\" in")
                || start.ends_with("!!")
                || start.ends_with("bool(")
            {
                continue;
            }
            if mark == "ENV"
                && rest.starts_with(|letter: char| {
                    letter.is_alphanumeric() || letter == '_' || letter == '{'
                })
            {
                continue;
            }
            if allowed.iter().any(|next| rest.starts_with(next)) {
                // A single variable; its name may say that it is a secret.
                let inside: String = rest
                    .trim_start_matches("IRON[")
                    .chars()
                    .skip_while(|letter| !letter.is_ascii_uppercase())
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .collect();
                if mark.starts_with("dotenv") {
                    // `console.log(require('dotenv').config())` shows what it has loaded.
                    if code.contains("console.log(require(") || rest.starts_with(".parsed") {
                        found.deny(
                            "read",
                            invocation.shown(),
                            "this prints what a file with secrets holds",
                        );
                    }
                    continue;
                }
                let prints = ["print", "console.log", "puts", "echo", "stdout"]
                    .iter()
                    .any(|word| code.contains(word))
                    || invocation.has_option("p", &["--print"]);
                if is_secret_variable(&inside) && prints {
                    found.ask_user(
                        "print",
                        invocation.shown(),
                        "this prints a variable that holds a secret",
                    );
                }
                continue;
            }
            found.deny(
                "environment",
                invocation.shown(),
                "this prints the whole environment, with the secrets in it",
            );
        }
    }
}

/// Programs that print secrets from a store.
fn judge_stores(invocation: &Invocation, texts: &[&str], found: &mut Objections<'_>) {
    let has = |word: &str| texts.contains(&word);
    let first = texts
        .iter()
        .find(|text| !text.starts_with('-'))
        .copied()
        .unwrap_or_default();
    let prints = match invocation.name.as_str() {
        "security" => texts.iter().any(|text| {
            text.starts_with("find-") && text.ends_with("-password")
                || *text == "dump-keychain"
                || text.starts_with("export")
        }),
        "pass" | "gopass" => {
            !matches!(
                first,
                "ls" | "list"
                    | "insert"
                    | "generate"
                    | "git"
                    | "init"
                    | "find"
                    | "edit"
                    | "version"
                    | "help"
            ) && !texts.is_empty()
        }
        "op" => {
            matches!(first, "read" | "item" | "document" | "inject")
                && !has("list")
                && !has("create")
                && !has("edit")
        }
        "bw" => first == "get" || first == "export" || first == "list",
        "vault" => {
            first == "read" || first == "kv" && has("get") || first == "print" && has("token")
        }
        "keepassxc-cli" => matches!(first, "show" | "clip" | "export" | "attachment-export"),
        "pulumi" => has("--show-secrets"),
        // The service of a cloud that hands out credentials to a machine.
        "curl" | "wget" | "http" | "xh" => texts.iter().any(|text| {
            (text.contains("169.254.169.254") || text.contains("metadata.google.internal"))
                && ["credentials", "token", "identity", "user-data"]
                    .iter()
                    .any(|part| text.contains(part))
        }),
        "aws" => {
            has("get-secret-value")
                || has("batch-get-secret-value")
                || has("export-credentials")
                || has("get-session-token")
                || (has("get-parameter") || has("get-parameters")) && has("--with-decryption")
                || has("get-parameters-by-path") && has("--with-decryption")
                || has("configure")
                    && has("get")
                    && texts
                        .iter()
                        .any(|text| text.contains("secret") || text.contains("token"))
        }
        "gcloud" => {
            has("print-access-token")
                || has("print-identity-token")
                || has("access") && has("versions")
        }
        "az" => {
            has("get-access-token")
                || has("keyvault") && has("secret") && (has("show") || has("download"))
                || has("keys") && has("list")
                || has("credential") && (has("show") || has("list"))
                || has("list-keys")
                || has("get-credentials") && has("--admin")
        }
        "kubectl" | "oc" => {
            (has("get") || has("describe"))
                && texts.iter().any(|text| {
                    matches!(*text, "secret" | "secrets")
                        || text.starts_with("secret/")
                        || text.starts_with("secrets/")
                })
                && texts.iter().any(|text| {
                    text.starts_with("-o")
                        || text.starts_with("--output")
                        || text.starts_with("--template")
                        || *text == "json"
                        || *text == "yaml"
                })
                && !texts.iter().any(|text| {
                    *text == "-oname"
                        || *text == "name"
                        || text.ends_with("=name")
                        || *text == "wide"
                })
                || has("config") && has("view") && has("--raw")
                || has("whoami") && (has("-t") || has("--show-token"))
                || has("create") && has("token")
        }
        "gh" => {
            first == "auth" && (has("token") || has("status") && (has("-t") || has("--show-token")))
        }
        "glab" => first == "auth" && has("status") && has("-t"),
        "heroku" => first == "config" || first == "config:get" || first == "auth:token",
        "doppler" => first == "secrets" && !has("--only-names") && !has("set"),
        "sops" => has("-d") || has("--decrypt") || first == "decrypt",
        "ansible-vault" => matches!(first, "view" | "decrypt"),
        "git" => {
            has("credential") && has("fill")
                || texts.iter().any(|text| text.starts_with("credential-")) && has("get")
                || has("config")
                    && texts.iter().any(|text| {
                        text.contains("token")
                            || text.ends_with(".password")
                            || text.ends_with("extraheader")
                    })
        }
        "npm" => first == "config" && has("get") && texts.iter().any(|text| text.contains("_auth")),
        "docker-credential-desktop"
        | "docker-credential-osxkeychain"
        | "docker-credential-pass"
        | "docker-credential-secretservice"
        | "git-credential-osxkeychain" => has("get"),
        "rails" => texts
            .iter()
            .any(|text| text.starts_with("credentials:") || text.starts_with("encrypted:")),
        "terraform" | "tofu" => {
            first == "output"
                && (has("-raw") || has("-json"))
                && texts
                    .iter()
                    .any(|text| is_secret_variable(&text.to_ascii_uppercase().replace('-', "_")))
        }
        "getent" => matches!(first, "shadow" | "gshadow"),
        "secret-tool" => matches!(first, "lookup" | "search"),
        "gpg" | "gpg2" => texts.iter().any(|text| text.starts_with("--export-secret")),
        "vercel" => first == "env" && has("pull"),
        "fly" | "flyctl" => texts.starts_with(&["auth", "token"]),
        "keyring" => first == "get",
        "chamber" => matches!(first, "read" | "export" | "env"),
        "infisical" => matches!(first, "secrets" | "export"),
        "credstash" => matches!(first, "get" | "getall"),
        "lpass" => first == "show",
        "openssl" => {
            (first == "rsa" || first == "pkey" || first == "ec")
                && !has("-pubout")
                && !has("-noout")
                && !has("-check")
                && (has("-in") && !has("-out"))
        }
        _ => false,
    };
    if prints {
        found.ask_user(
            "store",
            invocation.shown(),
            "this prints a secret from a secret store",
        );
    }
}
