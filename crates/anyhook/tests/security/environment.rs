//! Variables, streams and signals that a project, an agent or a machine can choose, and
//! that must not switch a guard off.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhook_testkit::{ProcessOutput, Scratch};
use serde_json::json;

use crate::locked::{BIN, LockedMachine, RUN, add_guard, dangerous};
use crate::support::{GUARD, anyhook, is_denied, journal, payload, project, run_dangerous};

/// A guard of the user that runs this command, with `more` keys.
fn user_guard(scratch: &Scratch, command: &str, more: &serde_json::Value) {
    let mut hook = json!({"name": "guard", "event": "before_tool_execute", "blocking": true,
        "handler": {"type": "command", "command": command}});
    for (key, value) in more.as_object().unwrap() {
        hook[key] = value.clone();
    }
    let manifest = json!({"spec": "hooks/1.0", "hooks": [hook]}).to_string();
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest).unwrap();
}

#[test]
fn no_stack_size_of_the_environment_ends_the_dispatcher() {
    let scratch = Scratch::new().unwrap();
    let hook = |name: &str, command: &str| {
        json!({"name": name, "event": "before_tool_execute", "blocking": true,
            "handler": {"type": "command", "command": command, "dialect": "claude-code"}})
    };
    let hooks = [
        hook("a", "echo no >&2; exit 2"),
        hook("b", "env > environment; true"),
    ];
    let manifest = json!({"spec": "hooks/1.0", "hooks": hooks}).to_string();
    let path = scratch.config().join("hooks.json");
    scratch.file(path, &manifest).unwrap();
    for size in ["1", "40000", "x"] {
        let output = anyhook(&scratch)
            .env("RUST_MIN_STACK", size)
            .run(RUN, &dangerous(&scratch))
            .unwrap();
        assert!(is_denied(&output), "{size}: {output:?}");
    }
}

#[test]
fn a_home_that_hides_the_users_guards_is_told_once_per_session() {
    let Some(machine) = LockedMachine::new(r#"{"allow_env_override": true}"#) else {
        return;
    };
    let scratch = &machine.scratch;
    let elsewhere = scratch.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let home = |home: &Path| vec![format!("HOME={}", home.display())];
    let told = |variables: &[String]| machine.run(0, "", variables).stdout.contains("`HOME`");
    // Nothing is hidden: nothing to tell.
    assert!(!told(&home(&elsewhere)));
    add_guard(scratch, &scratch.home().join(".config/anyhook"));
    assert!(!told(&home(&scratch.home())));
    let mut both = home(&elsewhere);
    let config = scratch.root().join("config-elsewhere");
    both.push(format!("XDG_CONFIG_HOME={}", config.display()));
    let output = machine.run(0, "", &both);
    assert!(output.stdout.contains("XDG_CONFIG_HOME"), "{output:?}");
    fs::remove_dir_all(&elsewhere).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    assert!(told(&home(&elsewhere)));
    assert!(!told(&home(&elsewhere)), "again in the same session");
    // Another name of the same folder hides nothing.
    let link = scratch.root().join("link");
    std::os::unix::fs::symlink(scratch.home(), &link).unwrap();
    assert!(!told(&home(&link)));
}

#[test]
fn no_limit_of_the_environment_erases_the_journal() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    assert!(is_denied(&run_dangerous(&scratch)));
    for n in 0..3 {
        let mut event = payload(&scratch, "ls");
        event["tool_use_id"] = n.to_string().into();
        let small = anyhook(&scratch).env("ANYHOOK_JOURNAL_LIMIT", "1");
        small.run(RUN, &event.to_string()).unwrap();
    }
    assert_eq!(journal(&scratch).len(), 4, "in the current file");
}

#[test]
fn no_variable_that_injects_code_reaches_a_hook() {
    let scratch = Scratch::new().unwrap();
    user_guard(&scratch, "env > environment; true", &json!({}));
    let names = [
        "PYTHONPATH",
        "PYTHONUSERBASE",
        "PERL5LIB",
        "BUN_OPTIONS",
        "MAKEFILES",
        "MAKEFLAGS",
        "LUA_INIT",
        "LUA_INIT_5_4",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "DOTNET_STARTUP_HOOKS",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "RUBYLIB",
        "NODE_PATH",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "R_PROFILE",
        "OPENSSL_CONF",
        "ERL_FLAGS",
        "RUST_MIN_STACK",
    ];
    let mut invocation = anyhook(&scratch).env("VIRTUAL_ENV", "kept");
    for name in names {
        invocation = invocation.env(name, "8388608");
    }
    invocation.run(RUN, &dangerous(&scratch)).unwrap();
    let environment = fs::read_to_string(scratch.project().join("environment")).unwrap();
    assert!(environment.contains("VIRTUAL_ENV=kept"), "{environment}");
    for name in names {
        assert!(!environment.contains(&format!("{name}=")), "{environment}");
    }
}

#[test]
fn a_deny_that_cannot_be_written_blocks_by_its_exit_code() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    let run = |redirection: &str, command: &str| {
        let line = format!("exec \"$0\" run --agent claude-code {redirection}");
        let event = payload(&scratch, command).to_string();
        let shell = scratch.command("sh");
        shell.run(["-c", &line, BIN], &event).unwrap()
    };
    for redirection in [">/dev/full", ">&-", ">/dev/null"] {
        let output = run(redirection, "rm -rf /");
        assert_eq!(output.exit, Some(2), "{redirection}: {output:?}");
        assert!(
            output.stderr.contains("guarded"),
            "{redirection}: {output:?}"
        );
        assert_eq!(run(redirection, "ls").exit, Some(0), "{redirection}");
    }
    assert_eq!(run("", "rm -rf /").exit, Some(0));
}

/// Starts a call, waits until its guard runs, and sends a signal.
fn signalled(scratch: &Scratch, signal: &str) -> ProcessOutput {
    let ran = scratch.project().join("ran");
    let _ = fs::remove_file(&ran);
    let mut child = anyhook(scratch).spawn(RUN).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(dangerous(scratch).as_bytes()).unwrap();
    drop(stdin);
    while !ran.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    ProcessOutput::wait(child).unwrap()
}

#[test]
fn a_signal_does_not_turn_a_deny_into_silence() {
    let guard = ": > \"$ANYHOOK_PROJECT_DIR/ran\"; exec sleep 1000";
    for signal in ["-TERM", "-INT", "-HUP", "-QUIT"] {
        let scratch = Scratch::new().unwrap();
        user_guard(&scratch, guard, &json!({"on_failure": "block"}));
        let output = signalled(&scratch, signal);
        assert!(is_denied(&output), "{signal}: {output:?}");
        // A guard whose failure allows has nothing to say.
        user_guard(&scratch, guard, &json!({}));
        let output = signalled(&scratch, signal);
        assert_eq!(
            (output.exit, output.stdout.as_str()),
            (Some(143), ""),
            "{signal}"
        );
    }
}

#[test]
fn a_deny_that_was_written_before_the_timeout_counts() {
    let deny = json!({"decision": "deny", "reason": "written"});
    for end in ["exec sleep 1000", "kill -KILL $$", "exit 1"] {
        let scratch = Scratch::new().unwrap();
        let handler = json!({"type": "command", "timeout": 2, "timeout_action": "warn",
            "command": format!("echo '{deny}'; {end}")});
        user_guard(&scratch, "", &json!({"handler": handler}));
        let output = run_dangerous(&scratch);
        assert!(is_denied(&output), "{end}: {output:?}");
        assert!(output.stdout.contains("written"), "{end}: {output:?}");
        // What it allows does not count.
        let handler = json!({"type": "command", "timeout": 0.5, "timeout_action": "block",
            "command": "echo '{\"decision\":\"allow\"}'; exec sleep 1000"});
        user_guard(&scratch, "", &json!({"handler": handler}));
        assert!(is_denied(&run_dangerous(&scratch)));
    }
}

#[test]
fn a_folder_that_cannot_exist_does_not_keep_a_guard_from_running() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    let mut event = payload(&scratch, "rm -rf /");
    event["cwd"] = "/a\0b".into();
    let output = anyhook(&scratch).run(RUN, &event.to_string()).unwrap();
    assert!(is_denied(&output), "{output:?}");
    assert!(output.stdout.contains("guarded"), "{output:?}");
}

/// Another user could have written the first entry's answer.
#[test]
fn a_state_folder_that_others_can_write_answers_no_second_entry() {
    let scratch = Scratch::new().unwrap();
    add_guard(&scratch, &scratch.config());
    fs::set_permissions(scratch.state(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut event = payload(&scratch, "ls");
    event["tool_use_id"] = "t1".into();
    let run = |scope: &str| {
        let args = ["run", "--agent", "claude-code", "--scope", scope];
        anyhook(&scratch).run(args, &event.to_string()).unwrap()
    };
    assert!(!is_denied(&run("user")));
    let denies = "#!/bin/sh\necho guarded >&2\nexit 2\n";
    scratch
        .exec(scratch.config().join("guard.sh"), denies)
        .unwrap();
    let second = run("project");
    assert!(is_denied(&second), "{second:?}");
}

/// A server of `openssl`, whose certificate only `ca` vouches for, and which answers
/// each connection with this decision.
struct TlsServer {
    child: Child,
    ca: PathBuf,
    port: u16,
}

impl TlsServer {
    fn start(scratch: &Scratch, answer: &serde_json::Value) -> Option<Self> {
        let folder = scratch.root().join("tls");
        fs::create_dir(&folder).unwrap();
        let (ca, key) = (folder.join("ca.pem"), folder.join("key.pem"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "extendedKeyUsage=serverAuth"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&ca)
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: there is no openssl");
            return None;
        }
        let body = answer.to_string();
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", &port.to_string(), "-naccept", "8"])
            .arg("-cert")
            .arg(&ca)
            .arg("-key")
            .arg(&key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !lines.next().unwrap().unwrap().contains("ACCEPT") {}
        std::thread::spawn(move || lines.for_each(drop));
        child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(reply.as_bytes())
            .unwrap();
        Some(Self { child, ca, port })
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One call of an `http` guard in this folder, with a certificate of the environment.
fn ask_over_tls(folder: fn(&Scratch) -> PathBuf) -> Option<ProcessOutput> {
    let scratch = Scratch::new().unwrap();
    let server = TlsServer::start(&scratch, &json!({"decision": "deny", "reason": "believed"}))?;
    let url = format!("https://localhost:{}/check", server.port);
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{"name": "guard",
        "event": "before_tool_execute", "blocking": true,
        "handler": {"type": "http", "url": url, "timeout": 20}}]});
    let path = folder(&scratch).join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    let invocation = anyhook(&scratch).env("SSL_CERT_FILE", &server.ca);
    Some(invocation.run(RUN, &dangerous(&scratch)).unwrap())
}

#[test]
fn a_certificate_of_the_environment_does_not_answer_for_a_managed_guard() {
    let Some(output) = ask_over_tls(Scratch::config) else {
        return;
    };
    assert!(
        output.stdout.contains("believed"),
        "the user's guard: {output:?}"
    );
    let output = ask_over_tls(Scratch::managed).unwrap();
    assert!(!output.stdout.contains("believed"), "{output:?}");
    assert!(
        output.stdout.contains("hook `guard`"),
        "it is told: {output:?}"
    );
}

#[test]
fn a_proxy_of_the_environment_hears_nothing_of_a_managed_guard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    let ask = |folder: PathBuf, scratch: &Scratch, env: serde_json::Value| {
        let manifest = json!({"spec": "hooks/1.0", "hooks": [{"name": "guard",
            "event": "before_tool_execute", "blocking": true,
            "handler": {"type": "http", "url": "https://guard.invalid/x", "env": env}}]});
        let path = folder.join("hooks.json");
        scratch.file(path, &manifest.to_string()).unwrap();
        let invocation = anyhook(scratch).env("HTTPS_PROXY", &proxy);
        invocation.run(RUN, &dangerous(scratch)).unwrap();
        calls.swap(0, Ordering::SeqCst)
    };
    let scratch = Scratch::new().unwrap();
    assert_eq!(ask(scratch.config(), &scratch, json!({})), 1, "the user's");
    let scratch = Scratch::new().unwrap();
    assert_eq!(ask(scratch.managed(), &scratch, json!({})), 0);
    // The administrator can name one.
    let named = json!({"HTTPS_PROXY": proxy});
    assert_eq!(ask(scratch.managed(), &scratch, named), 1);
}

/// The user's settings, as they are and broken, neither let a managed guard call without
/// TLS nor keep it from calling.
#[test]
fn the_users_settings_do_not_reach_a_managed_http_guard() {
    let ask = |folder: fn(&Scratch) -> PathBuf, url: &str, settings: &str| {
        let scratch = Scratch::new().unwrap();
        let manifest = json!({"spec": "hooks/1.0", "hooks": [{"name": "guard",
            "event": "before_tool_execute", "blocking": true,
            "handler": {"type": "http", "url": url, "timeout": 20}}]});
        let path = folder(&scratch).join("hooks.json");
        scratch.file(path, &manifest.to_string()).unwrap();
        let settings_path = scratch.config().join("config.yaml");
        scratch.file(settings_path, settings).unwrap();
        let output = anyhook(&scratch).run(RUN, &dangerous(&scratch)).unwrap();
        assert!(output.stdout.contains("hook `guard`"), "{output:?}");
        output.stdout
    };
    let plain = "http://guard.invalid/x";
    let allowing = "http: {allow_plain: [guard.invalid]}\n";
    let refusal = "is not https";
    assert!(!ask(Scratch::config, plain, allowing).contains(refusal));
    assert!(ask(Scratch::managed, plain, allowing).contains(refusal));
    // No daemon listens there, and the notice says so.
    let here = "http://127.0.0.1:9/x";
    let called = format!("POST {here}");
    assert!(!ask(Scratch::config, here, "{").contains(&called));
    assert!(ask(Scratch::managed, here, "{").contains(&called));
}

/// The answer to a dangerous call with a prompt hook in `folder`, and the evaluators of
/// the administrator and of the user.
fn judged(folder: fn(&Scratch) -> PathBuf, managed: &str, user: &str) -> (Scratch, ProcessOutput) {
    let scratch = Scratch::new().unwrap();
    let manifest = json!({"spec": "hooks/1.0", "hooks": [{"name": "guard",
        "event": "before_tool_execute", "blocking": true, "on_failure": "block",
        "handler": {"type": "prompt", "prompt": "May it run?", "timeout": 20}}]});
    let path = folder(&scratch).join("hooks.json");
    scratch.file(path, &manifest.to_string()).unwrap();
    for (folder, command) in [(scratch.managed(), managed), (scratch.config(), user)] {
        let settings = json!({"evaluator": {"command": command}}).to_string();
        if !command.is_empty() {
            scratch.file(folder.join("config.json"), &settings).unwrap();
        }
    }
    let output = anyhook(&scratch).run(RUN, &dangerous(&scratch)).unwrap();
    (scratch, output)
}

const APPROVES: &str = "echo '{\"ok\": true}'";
const DENIES: &str = "echo '{\"ok\": false, \"reason\": \"judged\"}'";

#[test]
fn a_managed_prompt_is_judged_by_the_administrators_evaluator() {
    let (_, output) = judged(Scratch::managed, DENIES, APPROVES);
    assert!(output.stdout.contains("judged"), "{output:?}");
    let (_, output) = judged(Scratch::managed, APPROVES, DENIES);
    assert!(!is_denied(&output), "{output:?}");
    // It says nothing about the user's own hooks.
    let (_, output) = judged(Scratch::config, APPROVES, DENIES);
    assert!(output.stdout.contains("judged"), "{output:?}");
    // A variable of the user's shell does not reach its program.
    let in_shell = "[ -z \"$PROBE_OF_THE_USER\" ] && echo '{\"ok\": true}'";
    let (scratch, _) = judged(Scratch::managed, in_shell, DENIES);
    let output = anyhook(&scratch)
        .env("PROBE_OF_THE_USER", "1")
        .run(RUN, &dangerous(&scratch))
        .unwrap();
    assert!(!is_denied(&output), "{output:?}");
}

#[test]
fn an_evaluator_that_others_can_write_does_not_judge() {
    let (scratch, output) = judged(Scratch::config, "", APPROVES);
    assert!(!is_denied(&output), "{output:?}");
    let settings = scratch.config().join("config.json");
    std::fs::set_permissions(settings, PermissionsExt::from_mode(0o666)).unwrap();
    let output = anyhook(&scratch).run(RUN, &dangerous(&scratch)).unwrap();
    assert!(is_denied(&output), "{output:?}");
    assert!(output.stdout.contains("others can write"), "{output:?}");
}

/// A project whose approved guard runs this script.
fn approved(script: &str) -> Scratch {
    let scratch = project();
    fs::remove_file(scratch.project().join(".anyhook/guard.sh")).unwrap();
    let manifest = crate::support::MANIFEST.replace("./guard.sh", "./bin/guard.sh");
    scratch.file(".anyhook/hooks.yaml", &manifest).unwrap();
    scratch.exec(".anyhook/bin/guard.sh", script).unwrap();
    let output = anyhook(&scratch).run(["trust", "--yes"], "").unwrap();
    assert_eq!(output.exit, Some(0), "{output:?}");
    let policy = scratch.managed().join("policy.json");
    scratch.file(policy, r#"{"fail_closed": true}"#).unwrap();
    scratch
}

/// Here the script itself exchanges its folder; a process beside it could do the same.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_that_is_exchanged_during_the_run_makes_it_a_failure() {
    let folder = "\"$ANYHOOK_PROJECT_DIR/.anyhook\"";
    for (moves, is_failure) in [
        (format!("cd {folder} && mv bin aside && mv aside bin"), true),
        (
            format!("cd {folder}/.. && mv .anyhook aside && mv aside .anyhook"),
            true,
        ),
        (
            format!("sleep 0.1; cd {folder} && mv bin aside && mv aside bin"),
            true,
        ),
        // What a hook writes beside itself is no exchange, nor what is written elsewhere
        // while it takes its time.
        (format!("cd {folder}/bin && : > log && rm log"), false),
        (
            format!("sleep 0.1; cd {folder} && : > bin/log && : > log && : > ../log"),
            false,
        ),
    ] {
        let scratch = approved(&format!("#!/bin/sh\n{moves}\nexit 0\n"));
        let output = run_dangerous(&scratch);
        assert_eq!(is_denied(&output), is_failure, "{moves}: {output:?}");
    }
}

/// Through memory a file changes without a trace; only a process that has opened it for
/// writing can do that.
#[test]
#[cfg(target_os = "linux")]
fn a_script_that_is_open_for_writing_never_decides() {
    let scratch = approved(GUARD);
    let harmless = payload(&scratch, "ls").to_string();
    let run = || anyhook(&scratch).run(RUN, &harmless).unwrap();
    assert!(!is_denied(&run()));
    let guard = scratch.project().join(".anyhook/bin/guard.sh");
    let writer = fs::OpenOptions::new().write(true).open(&guard).unwrap();
    let output = run();
    assert!(is_denied(&output), "{output:?}");
    drop(writer);
    assert!(!is_denied(&run()));
}
