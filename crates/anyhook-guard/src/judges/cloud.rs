//! `cloud`: destroying infrastructure, clusters, buckets and repositories.

mod aws;
mod docker;
mod github;
mod libraries;

use super::{Objections, is_delete_request, operand_texts};
use crate::input::GuardInput;
use crate::shell::{Invocation, UNKNOWN};
use aws::judge_aws;
use docker::judge_docker;
use github::judge_github;
use libraries::{deletes_by_library, names_cloud_host};

const COMMON_VALUES: &[&str] = &[
    "-n",
    "--namespace",
    "--context",
    "--kube-context",
    "--kubeconfig",
    "--profile",
    "--region",
    "--project",
    "--zone",
    "--cluster",
    "-s",
    "--stack",
    "-C",
    "--cwd",
    "--output",
    "-o",
    "--endpoint-url",
    "--account",
    "-R",
    "--repo",
    "--configuration",
    "--as",
    "--server",
    "--token",
    "--subscription",
    "-g",
    "--resource-group",
    "-l",
    "--selector",
    "-f",
    "--filename",
    "-k",
    "--filter",
    "--format",
    "--app",
    "-a",
    "-H",
    "--host",
    "-p",
    "--project-name",
    "--query",
    "-F",
    "--field",
    "-X",
    "--method",
    "--body",
    "--title",
    "-t",
    "-b",
    "--message",
    "-m",
    "--log-level",
];

pub(crate) fn judge(input: &GuardInput<'_>, found: &mut Objections<'_>) {
    found.judge_each(input, judge_invocation);
    // `terraform plan -destroy -out p; terraform apply p`.
    let mut is_planned = false;
    for invocation in input.invocations() {
        if !matches!(invocation.name.as_str(), "terraform" | "tofu") {
            continue;
        }
        is_planned |= invocation.has_word("plan") && is_switched_on(invocation, "-destroy");
        if is_planned && invocation.has_word("apply") {
            found.deny(
                "destroy",
                invocation.shown(),
                "this destroys infrastructure",
            );
        }
    }
}

fn judge_invocation(invocation: &Invocation, found: &mut Objections<'_>) {
    let shown = || invocation.shown();
    let name = invocation.name.as_str();
    let is_dry = invocation.texts().any(|text| {
        text.starts_with("--dry-run") && text != "--dry-run=none"
            || matches!(
                text,
                "--dryrun" | "--help" | "-h" | "--what-if" | "help" | "--DryRun"
            )
            || text == "-help"
    });
    if is_dry {
        return;
    }
    let values: Vec<&str> = COMMON_VALUES
        .iter()
        .copied()
        .filter(|option| !(name == "gsutil" && matches!(*option, "-m" | "-o")))
        .collect();
    let operands = operand_texts(invocation, &values);
    let lower: Vec<String> = operands
        .iter()
        .map(|text| text.to_ascii_lowercase())
        .collect();
    let first = lower.first().map_or("", String::as_str);
    let has = |word: &str| lower.iter().any(|text| text == word);
    let unknown_verb = first.contains(UNKNOWN);
    let deny = |found: &mut Objections<'_>, rule: &str, what: &str| found.deny(rule, shown(), what);
    match name {
        "terraform" | "tofu" | "terragrunt" | "opentofu" => {
            let is_destroy = has("destroy")
                || has("destroy-all")
                || is_switched_on(invocation, "-destroy") && has("apply")
                || is_set(invocation, "TF_CLI_ARGS", "-destroy");
            if is_destroy {
                deny(found, "destroy", "this destroys infrastructure");
            } else if first == "state" && (has("rm") || has("push"))
                || first == "force-unlock"
                || first == "workspace" && has("delete")
                || first == "taint"
            {
                deny(
                    found,
                    "state",
                    "this changes the state that Terraform keeps of the infrastructure",
                );
            } else if first == "apply"
                && (is_switched_on(invocation, "-auto-approve")
                    || is_set(invocation, "TF_CLI_ARGS", "-auto-approve")
                    || !invocation.input_from.is_empty()
                    || invocation.input_text.is_some())
            {
                found.ask_user(
                    "unapproved",
                    shown(),
                    "this changes infrastructure without the user having seen the plan",
                );
            } else if unknown_verb {
                found.ask_user(
                    "dynamic",
                    shown(),
                    "which command this runs is only known at run time",
                );
            }
        }
        "pulumi" | "cdk" | "aws-cdk" | "cdktf" | "serverless" | "sls" | "sst" | "cdk8s"
        | "copilot" | "amplify" | "zappa" | "chalice" | "eb" | "up" => {
            let is_destroy = matches!(
                first,
                "destroy" | "remove" | "delete" | "undeploy" | "terminate"
            ) || has("destroy")
                || name == "pulumi"
                    && (matches!(first, "down" | "dn")
                        || first == "stack" && has("rm")
                        || first == "state" && has("delete"))
                || matches!(name, "copilot" | "amplify") && has("delete")
                || invocation.has_option("", &["--destroy"]);
            if is_destroy && !(matches!(name, "up") && first != "stack") {
                deny(found, "destroy", "this destroys infrastructure");
            } else if name == "pulumi" && first == "up" && invocation.has_option("y", &["--yes"])
                || first == "deploy" && has_value(invocation, "--require-approval", "never")
            {
                found.ask_user(
                    "unapproved",
                    shown(),
                    "this changes infrastructure without the user having seen the plan",
                );
            }
        }
        "azd" if first == "down" => deny(found, "destroy", "this destroys infrastructure"),
        "sam" if first == "delete" => deny(found, "destroy", "this deletes a stack"),
        "kubectl" | "oc" | "k" | "microk8s.kubectl" | "kubecolor" | "k3s" | "k0s" | "microk8s"
        | "minikube"
            if !matches!(name, "microk8s" | "minikube" | "k0s") || first == "kubectl" =>
        {
            let verb = lower
                .iter()
                .find(|text| !matches!(text.as_str(), "kubectl" | "adm" | "--"))
                .map_or("", String::as_str);
            match verb {
                "delete" => deny(found, "kubernetes", "this deletes resources of a cluster"),
                "drain" => deny(found, "kubernetes", "this evicts every pod of a node"),
                "replace" if invocation.has_option("", &["--force"]) => deny(
                    found,
                    "kubernetes",
                    "this deletes resources and creates them again",
                ),
                "scale"
                    if invocation
                        .texts()
                        .any(|text| text.starts_with("--replicas=0"))
                        || invocation
                            .texts()
                            .collect::<Vec<_>>()
                            .windows(2)
                            .any(|pair| pair == ["--replicas", "0"]) =>
                {
                    deny(found, "kubernetes", "this stops every replica");
                }
                "apply" if invocation.has_option("", &["--prune"]) => deny(
                    found,
                    "kubernetes",
                    "this deletes what the files do not list",
                ),
                "rollout" | "cordon" => {}
                _ if verb.contains(UNKNOWN) => found.ask_user(
                    "dynamic",
                    shown(),
                    "which command this runs is only known at run time",
                ),
                _ => {}
            }
        }
        "helm" | "helm3" | "helmfile"
            if matches!(first, "uninstall" | "delete" | "del" | "un")
                || name == "helmfile" && (has("destroy") || has("delete")) =>
        {
            deny(found, "kubernetes", "this deletes a release");
        }
        "aws" => judge_aws(&lower, invocation, found),
        "gcloud" | "gsutil" | "bq" => {
            let is_delete = has("delete")
                || has("destroy")
                || has("rb")
                || has("purge")
                || (name == "gsutil" || has("storage")) && (has("rm"))
                || name == "bq" && has("rm")
                || name == "gsutil" && has("rsync") && invocation.has_option("d", &[]);
            // Values that users give: `config set x delete`.
            let is_value = first == "logging" && lower.get(1).is_some_and(|word| word == "read")
                || matches!(first, "config")
                    && !(has("delete")
                        && lower.iter().position(|text| text == "delete") == Some(2));
            if is_delete && !is_value {
                deny(found, "delete", "this deletes resources of a cloud");
            }
        }
        "az" => {
            let is_delete = lower
                .iter()
                .take(5)
                .any(|text| text == "delete" || text == "purge" || text.starts_with("delete-"));
            let is_complete = first == "deployment"
                && invocation.texts().any(|text| {
                    text.eq_ignore_ascii_case("complete")
                        || text.eq_ignore_ascii_case("--mode=complete")
                });
            let texts: Vec<&str> = invocation.texts().collect();
            let is_short = texts.windows(2).any(
                |pair| matches!(pair, ["-m", method] if method.eq_ignore_ascii_case("delete")),
            );
            let is_request = first == "rest" && (is_short || is_delete_request(invocation));
            if is_delete || is_complete || is_request {
                deny(found, "delete", "this deletes resources of a cloud");
            }
        }
        "gh" => judge_github(&lower, invocation, found),
        "glab"
            if (matches!(
                first,
                "repo" | "project" | "release" | "variable" | "label" | "ci"
            ) && has("delete")
                || first == "repo" && has("archive")
                || first == "api" && is_delete_request(invocation)) =>
        {
            deny(
                found,
                "repository",
                "this deletes a repository or a part of it",
            );
        }
        "colima" | "limactl" if first == "delete" || first == "prune" => {
            found.ask_user(
                "containers",
                shown(),
                "this deletes a machine with its containers",
            );
        }
        "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose" => {
            judge_docker(name, &lower, invocation, found);
        }
        "eksctl" | "kops" | "kind" | "k3d" | "minikube" | "gke-deploy" | "rosa" | "talosctl"
        | "kubeadm" | "clusterctl" | "argocd" | "flux" | "kustomize" | "skaffold" | "velero"
        | "istioctl" | "argo" | "rancher" => {
            let is_local = matches!(name, "kind" | "k3d" | "minikube" | "skaffold");
            if (has("delete")
                || has("reset") && name == "kubeadm"
                || has("uninstall")
                || first == "reset" && name == "talosctl")
                && !is_local
            {
                deny(
                    found,
                    "kubernetes",
                    "this deletes a cluster or a part of it",
                );
            } else if is_local && has("delete") {
                found.ask_user("kubernetes", shown(), "this deletes a local cluster");
            }
        }
        "doctl" | "hcloud" | "oci" | "ibmcloud" | "linode-cli" | "vultr-cli" | "scw" | "exo"
        | "openstack" | "aliyun" | "tccli" | "upctl" | "civo" | "nomad" | "consul" | "vault"
        | "rclone" | "s3cmd" | "mc" | "s5cmd" | "s4cmd" | "ovhcloud" | "lxc" | "incus"
        | "virsh" | "multipass" | "packer" | "vagrant" | "step" | "confluent" | "atlas"
        | "pscale" | "neonctl" | "railway" | "upsun" | "platform" | "render" | "ecs-cli"
        | "ansible-galaxy" | "cf" | "snowsql" | "turso" | "nova" | "govc" | "koyeb"
        | "northflank" | "ionosctl" | "packet" | "metal" | "clever" | "scalingo" | "qovery"
        | "akash" | "eas" | "boundary" | "tea" | "ccloud" | "mongocli" | "databricks" | "snow"
        | "VBoxManage" | "vboxmanage" => {
            let is_delete = lower.iter().take(4).any(|text| {
                matches!(
                    text.as_str(),
                    "delete"
                        | "destroy"
                        | "rb"
                        | "purge"
                        | "terminate"
                        | "undefine"
                        | "delete-stack"
                        | "remove"
                        | "del"
                        | "delete-app"
                        | "down"
                ) || text.starts_with("delete-")
                    || text.starts_with("terminate-")
                    || text.ends_with("-delete")
                    || text.ends_with(":delete")
                    || text.ends_with(".destroy")
                    || text.ends_with(".remove")
            }) || matches!(first, "rm" | "rb" | "deletefile")
                && matches!(name, "mc" | "s5cmd" | "s3cmd")
                || matches!(name, "doctl" | "scw" | "civo") && has("rm")
                || name == "snow" && has("drop")
                || name == "databricks" && (has("rm") && first == "fs" || has("permanent-delete"))
                || matches!(name, "VBoxManage" | "vboxmanage")
                    && first == "unregistervm"
                    && invocation.has_option("", &["--delete"])
                || name == "nomad" && has("stop") && invocation.has_option("", &["-purge"])
                || name == "ibmcloud" && has("rm")
                || name == "vault" && matches!(first, "secrets" | "auth") && has("disable");
            let is_harmless = name == "vault" && first == "kv" && has("get");
            if is_delete && !is_harmless {
                deny(found, "delete", "this deletes resources of a cloud");
            }
        }
        "fly" | "flyctl" | "heroku" | "vercel" | "netlify" | "firebase" | "wrangler" | "now"
        | "surge" | "supabase" | "gigalixir" | "dokku" => {
            let is_delete = lower.iter().take(3).any(|text| {
                matches!(
                    text.as_str(),
                    "destroy"
                        | "delete"
                        | "rm"
                        | "remove"
                        | "apps:destroy"
                        | "teardown"
                        | "deprovision"
                ) || text.ends_with(":delete")
                    || text.ends_with(":destroy")
                    || text.ends_with(":reset")
                    || text.ends_with(":remove") && name == "heroku"
                    || (text.ends_with(":disable") || text.ends_with(":remove"))
                        && name == "firebase"
            }) || first == "ps:scale"
                && lower.iter().any(|text| text.ends_with("=0"));
            if is_delete {
                deny(found, "delete", "this deletes an application or its data");
            }
        }
        "hub" if first == "delete" || first == "api" && is_delete_request(invocation) => {
            deny(
                found,
                "repository",
                "this deletes a repository or a part of it",
            );
        }
        "etcdctl" if has("del") && invocation.has_option("", &["--prefix", "--from-key"]) => {
            deny(found, "delete", "this deletes the keys of a cluster");
        }
        "zkCli.sh" | "zkCli" | "zkcli" if has("deleteall") || has("rmr") => {
            deny(found, "delete", "this deletes a tree of nodes");
        }
        "rabbitmqctl" | "rabbitmqadmin"
            if lower.iter().any(|text| {
                text.starts_with("delete")
                    || text.starts_with("purge")
                    || text == "reset"
                    || text == "force_reset"
            }) =>
        {
            deny(found, "delete", "this deletes queues or their messages");
        }
        "kafka-topics"
        | "kafka-topics.sh"
        | "kafka-consumer-groups"
        | "kafka-consumer-groups.sh"
            if invocation.has_option("", &["--delete"]) =>
        {
            deny(found, "delete", "this deletes topics or groups");
        }
        "npm" | "cargo" | "gem" | "twine" | "yarn" | "pnpm" => {
            let is_unpublish = first == "unpublish"
                || name == "cargo" && first == "yank"
                || name == "gem" && first == "yank"
                || first == "owner" && has("rm");
            if is_unpublish {
                found.ask_user("registry", shown(), "this unpublishes a package");
            }
        }
        "curl" | "http" | "https" | "wget" | "xh" | "xhs" | "curlie" | "httpie" => {
            let host_is_cloud = invocation.texts().any(names_cloud_host);
            let is_delete = is_delete_request(invocation) || has("delete");
            if host_is_cloud && is_delete {
                deny(found, "delete", "this sends a delete request to a cloud");
            }
        }
        _ if invocation.code.as_deref().is_some_and(deletes_by_library) => {
            deny(found, "delete", "this code deletes resources of a cloud");
        }
        _ if name.starts_with("Remove-Az")
            || name.to_ascii_lowercase().starts_with("remove-az")
            || name.to_ascii_lowercase().starts_with("remove-ec2")
            || name.to_ascii_lowercase().starts_with("remove-s3") =>
        {
            deny(found, "delete", "this deletes resources of a cloud");
        }
        _ => {}
    }
}

/// `-destroy`, `--destroy` or `-destroy=true`.
fn is_switched_on(invocation: &Invocation, option: &str) -> bool {
    invocation.texts().any(|text| {
        let text = text
            .strip_prefix('-')
            .filter(|rest| rest.starts_with('-'))
            .unwrap_or(text);
        text.strip_prefix(option)
            .is_some_and(|value| value.is_empty() || value.starts_with('=') && value != "=false")
    })
}

/// Whether an option has this value, attached or as the next word.
fn has_value(invocation: &Invocation, option: &str, value: &str) -> bool {
    let texts: Vec<&str> = invocation.texts().collect();
    texts.windows(2).any(|pair| pair == [option, value])
        || texts.iter().any(|text| {
            text.strip_prefix(option)
                .and_then(|rest| rest.strip_prefix('='))
                == Some(value)
        })
}

/// Whether a variable whose name begins so is set to options with this one.
fn is_set(invocation: &Invocation, start: &str, option: &str) -> bool {
    invocation.variables.iter().any(|(name, value)| {
        name.starts_with(start)
            && value
                .text
                .split_whitespace()
                .any(|word| word.trim_start_matches('-') == option.trim_start_matches('-'))
    })
}
