//! Which files hold secrets, by their names and places.

use crate::paths::{fold_case, glob_matches, path_matches};
use crate::shell::ResolvedWord;

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
    ".yarnrc.yml",
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

pub(super) struct SecretFiles<'i> {
    pub(super) more: Vec<String>,
    pub(super) allowed: Vec<String>,
    pub(super) project: Option<&'i str>,
    pub(super) home: Option<&'i str>,
}

impl SecretFiles<'_> {
    pub(super) fn is_secret(&self, path: &str) -> bool {
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
        let folded = fold_case(path);
        let in_folder = |part: &str| {
            let part = fold_case(part);
            folded.contains(&format!("/{part}/")) || folded.ends_with(&format!("/{part}"))
        };
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
    pub(super) fn pattern_matches_secret(&self, word: &ResolvedWord, path: &str) -> bool {
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
    pub(super) fn pattern_names_secret(&self, pattern: &str) -> bool {
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

/// Folders in which nearly everything is secret.
pub(super) fn is_secret_folder(path: &str) -> bool {
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
    .any(|folder| fold_case(path.trim_end_matches('/')).ends_with(folder))
}
