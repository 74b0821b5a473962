//! Calls of `aws` that destroy.

use crate::judges::Objections;
use crate::shell::{Invocation, UNKNOWN};

pub(super) fn judge_aws(lower: &[String], invocation: &Invocation, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let service = lower.first().map_or("", String::as_str);
    let operation = lower.get(1).map_or("", String::as_str);
    if service == "s3" {
        let removes = matches!(operation, "rb" | "rm")
            || operation == "sync" && invocation.has_option("", &["--delete"]);
        if removes {
            found.deny("delete", shown(), "this deletes objects or a bucket");
        } else if operation.contains(UNKNOWN) {
            found.ask_user(
                "dynamic",
                shown(),
                "which operation this runs is only known at run time",
            );
        }
        return;
    }
    let is_destructive = [
        "delete-",
        "terminate-",
        "destroy-",
        "deregister-",
        "purge-",
        "remove-",
        "batch-delete",
        "close-account",
        "leave-organization",
        "disable-key",
        "schedule-key-deletion",
        "cancel-",
        "release-",
        "detach-",
        "abort-",
        "stop-db",
        "revoke-",
    ]
    .iter()
    .any(|prefix| operation.starts_with(prefix))
        || matches!(
            operation,
            "delete" | "rm" | "schedule-key-deletion" | "empty-bucket"
        );
    let is_mild = [
        "cancel-",
        "release-",
        "detach-",
        "abort-",
        "revoke-",
        "remove-tags",
        "delete-message",
        "remove-",
        "deregister-",
    ]
    .iter()
    .any(|prefix| operation.starts_with(prefix));
    let stops_all = operation == "update-service"
        && invocation
            .texts()
            .collect::<Vec<_>>()
            .windows(2)
            .any(|pair| pair == ["--desired-count", "0"]);
    if stops_all {
        found.ask_user("delete", shown(), "this stops every task of a service");
    } else if is_destructive {
        if is_mild {
            found.ask_user("delete", shown(), "this removes something from a cloud");
        } else {
            found.deny("delete", shown(), "this deletes resources of a cloud");
        }
    } else if operation.contains(UNKNOWN) || service.contains(UNKNOWN) {
        found.ask_user(
            "dynamic",
            shown(),
            "which operation this runs is only known at run time",
        );
    }
}
