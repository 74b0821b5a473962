//! Calls of `docker` and its relatives that destroy.

use crate::judges::Objections;
use crate::shell::Invocation;

pub(super) fn judge_docker(
    name: &str,
    lower: &[String],
    invocation: &Invocation,
    found: &mut Objections<'_>,
) {
    let shown = || invocation.shown();
    let mut words: Vec<&str> = lower.iter().map(String::as_str).collect();
    if matches!(name, "docker-compose" | "podman-compose") {
        words.insert(0, "compose");
    }
    let has_volumes = invocation
        .texts()
        .any(|text| text == "--volumes" || text.starts_with("--volumes=true") || text == "-v");
    let hidden = invocation
        .arguments()
        .iter()
        .any(crate::shell::ResolvedWord::has_unknown);
    match words.as_slice() {
        ["system", "prune", ..]
            if (words.first() == Some(&"system") || invocation.has_option("a", &["--all"]))
                && has_volumes =>
        {
            found.deny(
                "containers",
                shown(),
                "this deletes every unused image and volume, with the data in them",
            );
        }
        ["system", "prune", ..] if invocation.has_option("a", &["--all"]) => {
            found.ask_user("containers", shown(), "this deletes every unused image");
        }
        ["volume", "prune" | "rm" | "remove", ..] => found.deny(
            "containers",
            shown(),
            "this deletes volumes with the data in them",
        ),
        ["compose", rest @ ..] if rest.contains(&"down") && has_volumes => {
            found.deny(
                "containers",
                shown(),
                "this deletes the volumes of the services",
            );
        }
        ["compose", rest @ ..]
            if rest.first() == Some(&"rm") && (has_volumes || invocation.has_option("v", &[])) =>
        {
            found.ask_user(
                "containers",
                shown(),
                "this deletes the volumes of the services",
            );
        }
        ["rm" | "rmi", ..] | ["container" | "image", "rm" | "prune", ..]
            if hidden && invocation.has_option("f", &["--force"]) =>
        {
            found.ask_user(
                "containers",
                shown(),
                "which containers this deletes is only known at run time",
            );
        }
        ["system", "reset", ..] => {
            found.deny(
                "containers",
                shown(),
                "this deletes every container, image and volume",
            );
        }
        ["builder" | "buildx", "prune", ..] if invocation.has_option("a", &["--all"]) => {
            found.ask_user("containers", shown(), "this deletes every build cache");
        }
        ["rm", ..] | ["container" | "pod", "rm", ..]
            if invocation.has_option("a", &["--all"]) && name == "podman" =>
        {
            found.deny("containers", shown(), "this deletes every container");
        }
        ["image", "prune", ..] if invocation.has_option("a", &["--all"]) => {
            found.ask_user("containers", shown(), "this deletes every unused image");
        }
        ["swarm", "leave", ..] if invocation.has_option("f", &["--force"]) => {
            found.ask_user("containers", shown(), "this leaves the swarm");
        }
        [
            "stack" | "service" | "secret" | "config",
            "rm" | "remove",
            ..,
        ] => found.deny("containers", shown(), "this removes a stack or service"),
        _ => {}
    }
}
