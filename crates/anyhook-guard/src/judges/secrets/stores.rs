//! Programs that print secrets from a store.

use super::environment::is_secret_variable;
use crate::judges::Objections;
use crate::shell::Invocation;

/// Programs that print secrets from a store.
pub(super) fn judge_stores(invocation: &Invocation, texts: &[&str], found: &mut Objections<'_>) {
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
                || has("kms") && has("decrypt")
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
