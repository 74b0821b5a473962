//! Code and requests that reach a cloud without its command.

/// Hosts through which clouds are managed.
const CLOUD_HOSTS: &[&str] = &[
    "api.github.com",
    "googleapis.com",
    "amazonaws.com",
    "management.azure.com",
    "api.digitalocean.com",
    "api.hetzner.cloud",
    "api.cloudflare.com",
    "api.heroku.com",
    "gitlab.com/api",
    "api.vercel.com",
    "api.netlify.com",
    "api.fly.io",
    "api.machines.dev",
    "api.linode.com",
    "api.vultr.com",
    "api.scaleway.com",
];

pub(super) fn names_cloud_host(text: &str) -> bool {
    CLOUD_HOSTS.iter().any(|host| text.contains(host))
}

/// Calls of the clouds' own libraries that delete.
pub(super) fn deletes_by_library(code: &str) -> bool {
    let uses_cloud = ["boto3", "@aws-sdk", "google.cloud", "azure.mgmt"]
        .iter()
        .any(|library| code.contains(library));
    let sends_delete = [
        ".delete(",
        "method: 'DELETE'",
        "method:'DELETE'",
        "\"DELETE\"",
        "'DELETE'",
    ]
    .iter()
    .any(|call| code.contains(call));
    sends_delete && names_cloud_host(code)
        || uses_cloud
            && [
                ".delete_",
                ".terminate_",
                ".delete(",
                ".begin_delete",
                "DeleteCommand",
                "Delete",
            ]
            .iter()
            .any(|call| code.contains(call))
}
