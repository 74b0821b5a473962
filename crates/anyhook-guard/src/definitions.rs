//! The guards' names, options and promises: one table for the parser, the
//! documentation and `anyhook init`.

/// One guard, as users see it.
#[derive(Debug)]
pub struct GuardDefinition {
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    pub options: &'static [OptionDefinition],
    /// What it denies or asks about; it is measured by this list.
    pub catches: &'static [&'static str],
    /// What it lets through, plainly.
    pub misses: &'static [&'static str],
}

/// One option of a guard.
#[derive(Debug)]
pub struct OptionDefinition {
    /// With its dashes.
    pub name: &'static str,
    /// The placeholder of its value; `None` for a flag.
    pub value: Option<&'static str>,
    pub summary: &'static str,
    pub repeatable: bool,
}

const fn option(
    name: &'static str,
    value: &'static str,
    summary: &'static str,
) -> OptionDefinition {
    OptionDefinition {
        name,
        value: Some(value),
        summary,
        repeatable: true,
    }
}

const DECISION: OptionDefinition = OptionDefinition {
    name: "--decision",
    value: Some("deny|ask"),
    summary: "Answer `ask` where the guard would deny",
    repeatable: false,
};

const EXCEPT: OptionDefinition = option("--except", "RULE", "Switch one rule of the guard off");

pub fn definitions() -> &'static [GuardDefinition] {
    DEFINITIONS
}

pub fn definition(name: &str) -> Option<&'static GuardDefinition> {
    DEFINITIONS.iter().find(|guard| guard.name == name)
}

static DEFINITIONS: &[GuardDefinition] = &[
    GuardDefinition {
        name: "filesystem",
        summary: "Deleting, overwriting and opening up what is outside the project, and disks",
        options: &[
            DECISION,
            EXCEPT,
            option(
                "--allow",
                "GLOB",
                "Paths outside the project that may be deleted and overwritten",
            ),
        ],
        catches: &[
            "recursive or wildcard deletes of the root, a home folder, a system folder, the project itself or anything outside the project and the temporary folders",
            "deletes of `.git` in any project",
            "plain deletes of single files of the system (not in `/usr/local`, `/opt`, `/srv`, `/run` and mounted disks) and in key folders such as `~/.ssh`",
            "`mkfs`, `wipefs`, `fdisk` and `parted` on a device, `dd` and redirects to a device",
            "`chmod -R`, `chown -R` and `chgrp -R` outside the project, and `chmod -R 777` anywhere",
            "`truncate`, `shred` and moves of, into and over system folders, the home folder and `.git`",
            "fork bombs, `kill -1`, shutting the machine down",
            "the same through `sudo`, `find -delete`, `find -exec`, `xargs`, `sh -c`, `eval`, `ssh`, interpreters' one-liners, PowerShell and cmd",
            "asks where the deleted path is only known at run time",
        ],
        misses: &[
            "what a program or script does that the command starts",
            "other single files that a plain `rm FILE` deletes outside the project",
            "symbolic links that lead out of the project",
        ],
    },
    GuardDefinition {
        name: "git",
        summary: "Losing work or history with git",
        options: &[
            DECISION,
            EXCEPT,
            option(
                "--protect",
                "BRANCH",
                "Also deny pushes to this branch; `*` matches any part of a name",
            ),
        ],
        catches: &[
            "`reset --hard`, `reset --merge`, `checkout --force`, `checkout -- PATH`, `checkout .`, `restore` of the working tree, `switch --discard-changes`",
            "`clean -f` in all spellings, `stash drop`, `stash clear`",
            "force pushes without lease, pushes that delete a remote branch or tag, `push --mirror`",
            "`branch -D`, `tag -d`, `update-ref -d`, `worktree remove --force`",
            "rewriting history: `filter-branch`, `filter-repo`, `rebase --root` (asks), `reflog expire`, `gc --prune=now`",
            "`--no-verify`, and hooks switched off by `core.hooksPath` or an environment variable",
        ],
        misses: &[
            "aliases that are defined in a git configuration file",
            "other programs that write to `.git` (the `filesystem` and `paths` guards see those that delete)",
        ],
    },
    GuardDefinition {
        name: "secrets",
        summary: "Reading key files and environment dumps, and secrets in what is written or sent",
        options: &[
            DECISION,
            EXCEPT,
            option("--path", "GLOB", "More files that hold secrets"),
            option(
                "--allow",
                "GLOB",
                "Files that may be read in spite of their name",
            ),
        ],
        catches: &[
            "reading `.env` files, private keys, credentials of clouds and package registries, key stores, password stores and browser profiles: by the read, search and find tools, by shell commands, redirects and uploads",
            "environment dumps: `env`, `printenv`, `export -p`, `set`, `/proc/*/environ`, and printing a variable whose name says it is a secret",
            "asking a secret store for values: `security find-generic-password -w`, `pass show`, `op read`, `vault read`, `aws secretsmanager get-secret-value`, `kubectl get secret -o yaml`, `gh auth token` (asks)",
            "well-known tokens and private keys in what is written to files, sent by `curl` or put into a URL",
        ],
        misses: &[
            "programs that read a secret file by themselves, such as `docker compose` with its `.env`",
            "secrets without a well-known form",
        ],
    },
    GuardDefinition {
        name: "remote-code",
        summary: "Running what was just downloaded or decoded",
        options: &[
            DECISION,
            EXCEPT,
            option("--allow-host", "HOST", "Hosts whose scripts may be run"),
        ],
        catches: &[
            "a download that feeds an interpreter, by pipe, process substitution, command substitution, `eval` or `source`",
            "a download that is saved and run in the same command",
            "decoded text that is run: `base64 -d | sh`, `eval \"$(… | xxd -r)\"`, `python -c` with `exec` of decoded text, PowerShell's `-EncodedCommand`",
            "installing a package from a URL or a git repository (asks)",
            "`Invoke-Expression` of a download, `mshta`, `regsvr32` and `certutil` with a URL",
        ],
        misses: &[
            "packages from a registry and their install scripts",
            "a script that an earlier call downloaded",
        ],
    },
    GuardDefinition {
        name: "network",
        summary: "Only listed hosts may be contacted by shell and fetch tools",
        options: &[
            DECISION,
            EXCEPT,
            option(
                "--allow-host",
                "HOST",
                "A host that may be contacted; `*.example.org` includes its subdomains. Without any the guard never answers",
            ),
        ],
        catches: &[
            "URLs of the fetch tool, and of `curl`, `wget`, `git`, `pip`, `npm` and other clients",
            "hosts of `ssh`, `scp`, `rsync`, `nc`, `telnet`, `ftp`, `ping`, `dig` and database clients, and `/dev/tcp`",
            "asks where the host is only known at run time",
        ],
        misses: &[
            "hosts that a program contacts on its own account, such as a package manager's registry",
            "redirects that a server answers with",
        ],
    },
    GuardDefinition {
        name: "paths",
        summary: "Read-only and forbidden files for every tool",
        options: &[
            DECISION,
            EXCEPT,
            option("--read-only", "GLOB", "Files that must not be changed"),
            option(
                "--forbid",
                "GLOB",
                "Files that must be neither read nor changed",
            ),
        ],
        catches: &[
            "file tools, patches over several files, search and find tools",
            "shell commands that name such a file: redirects, `tee`, `sed -i`, `cp`, `mv`, `rm`, `dd`, `touch`, `chmod`, editors, `git checkout FILE`, and for forbidden files every reader",
            "asks where a redirect's target is only known at run time and a read-only list exists",
        ],
        misses: &[
            "files that a script or a build changes on its own account",
            "links that point to such a file",
        ],
    },
    GuardDefinition {
        name: "self",
        summary: "Changing the hooks themselves: manifests, state, agents' hook files, git hooks",
        options: &[DECISION, EXCEPT],
        catches: &[
            "writes, edits, moves, deletes and redirects to anyhook's manifests, policies, settings and state, by file tools and shell commands",
            "the same for the files in which agents keep their hooks, and for git hooks and `core.hooksPath`",
            "`anyhook uninstall`, `anyhook trust`, `anyhook allow-once` and other commands that weaken the guards, and environment variables that switch anyhook off",
            "ending the daemon and removing the program",
            "answering a question of the hooks in the user's place: the daemon's token and socket, requests to `/approvals`, a terminal for `anyhook approve`",
        ],
        misses: &["programs that write to these files on their own account"],
    },
    GuardDefinition {
        name: "database",
        summary: "Dropping, truncating and emptying databases",
        options: &[DECISION, EXCEPT],
        catches: &[
            "`DROP`, `TRUNCATE`, `DELETE` and `UPDATE` without `WHERE`, `ALTER TABLE … DROP` through psql, mysql, mariadb, sqlite3, sqlcmd, duckdb, clickhouse-client and cqlsh: as argument, here-document, here-string or pipe",
            "`dropdb`, `mysqladmin drop`, `redis-cli FLUSHALL`, `mongosh` with `dropDatabase`, `drop`, `deleteMany({})`",
            "resets by frameworks: `rails db:drop`, `prisma migrate reset`, `manage.py flush` and their relatives",
            "asks where the statement is only known at run time and comes from a command or a script, unless that only hands on a file or a backup",
        ],
        misses: &[
            "statements in a file that is passed with `-f` or `<`",
            "statements that a program builds",
        ],
    },
    GuardDefinition {
        name: "cloud",
        summary: "Destroying infrastructure, clusters, buckets and repositories",
        options: &[DECISION, EXCEPT],
        catches: &[
            "`terraform`, `tofu`, `terragrunt`, `pulumi`, `cdk`, `serverless` and `cloudformation` destroys; `terraform state rm`; applies without approval (asks)",
            "`kubectl delete`, `drain`, `replace --force`, `scale --replicas=0`; `helm uninstall`",
            "`aws`, `gcloud`, `az`, `doctl`, `hcloud`, `oci`, `ibmcloud`, `flyctl`, `heroku` and their relatives: delete, terminate, destroy, purge; `aws s3 rm --recursive`, `aws s3 rb`, `gsutil rm -r`",
            "`gh repo delete`, `gh release delete`, `gh api -X DELETE`, `glab repo delete`, archives and visibility changes (asks)",
            "`docker system prune -a`, `docker volume rm`, `docker rm -f` of everything, `docker compose down -v`",
        ],
        misses: &[
            "changes by APIs that are called with `curl`, except DELETE requests to the clouds' own hosts",
            "what a pipeline does after a push",
        ],
    },
    GuardDefinition {
        name: "budget",
        summary: "What the models of a session and a day may cost",
        options: &[
            OptionDefinition {
                name: "--session-usd",
                value: Some("USD"),
                summary: "Object once the session has cost this much",
                repeatable: false,
            },
            OptionDefinition {
                name: "--day-usd",
                value: Some("USD"),
                summary: "Object once all sessions of this machine have cost this much since midnight UTC",
                repeatable: false,
            },
            OptionDefinition {
                name: "--decision",
                value: Some("deny|ask|warn"),
                summary: "Answer `ask`, or only warn the user, where the guard would deny",
                repeatable: false,
            },
        ],
        catches: &[
            "every call of the event that the hook is for, once a limit is reached",
            "fails, so that `on_failure` decides, where it cannot know: an agent that reports no tokens, a model without a price, an event without a session, or sums that are not up to date",
        ],
        misses: &[
            "calls of models that the agent has not written to its transcript yet: the sums are at most ten seconds older than that",
            "other machines, and agents in which anyhook is not installed",
            "whoever changes transcripts, prices or anyhook's own files: it is a limit for mistakes, not for attacks",
        ],
    },
    GuardDefinition {
        name: "rules",
        summary: "Rules of your own, from a YAML file or inline",
        options: &[
            option("--file", "FILE", "A rules file, relative to the project"),
            option("--rule", "YAML", "One rule, inline"),
        ],
        catches: &["what the rules describe"],
        misses: &["everything else"],
    },
];
