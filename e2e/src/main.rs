//! `anyhook-e2e`: lists and installs the clients and runs the checks in them.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhook_e2e::bridge::Program;
use anyhook_e2e::cache::latest_version;
use anyhook_e2e::captures;
use anyhook_e2e::client::Client;
use anyhook_e2e::error::{Error, Result};
use anyhook_e2e::isolation::Isolation;
use anyhook_e2e::job::Job;
use anyhook_e2e::page;
use anyhook_e2e::proof::{Proof, find_newest_build};
use anyhook_e2e::report::{Check, ClientReport, align_columns, render_table};
use anyhook_e2e::session::Harness;
use anyhook_e2e::situation::Situation;
use anyhook_e2e::smoke::smoke;

const USAGE: &str = "\
usage: anyhook-e2e run [CLIENT…] [OPTIONS]        run the checks in all clients, or in those named
       anyhook-e2e selftest [CLIENT…] [OPTIONS]   break renderings on purpose: the checks must fail
       anyhook-e2e bench [CLIENT…] [OPTIONS]      compare the cost of a tool call without hooks, and with 20 that
                                                  match nothing: by starting the program, and via the daemon
       anyhook-e2e install [CLIENT…] [--latest]   only install the clients into the cache
       anyhook-e2e list                           list the clients, their versions, and what is installed

  --binary PATH  test this anyhook instead of the newest build
  --all          include the clients that otherwise run only when named
  --latest       use the newest version of each client instead of the pinned one
  --proof PATH   write the results page
  --results DIR  store each client's result there, and write the page about all that are stored
  --captures     store payloads with a new shape in the agents' folders
  --situation S  only this situation of `situations/`, by its file name; repeat for more
  --jobs N       number of sessions that run at the same time (default 2)
  --keep         keep the session folders and print where they are
  --plain        do not use namespaces, as on systems without them
";

/// The parsed command line.
#[derive(Default)]
struct Options {
    command: String,
    names: Vec<String>,
    binary: Option<PathBuf>,
    proof: Option<PathBuf>,
    results: Option<PathBuf>,
    all: bool,
    latest: bool,
    captures: bool,
    keep: bool,
    plain: bool,
    situations: Vec<String>,
    jobs: Option<usize>,
}

impl Options {
    fn parse(mut args: impl Iterator<Item = String>) -> Option<Options> {
        let mut options = Options::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--binary" => options.binary = Some(args.next()?.into()),
                "--proof" => options.proof = Some(args.next()?.into()),
                "--results" => options.results = Some(args.next()?.into()),
                "--situation" => options.situations.push(args.next()?),
                "--jobs" => options.jobs = Some(args.next()?.parse().ok()?),
                "--all" => options.all = true,
                "--latest" => options.latest = true,
                "--captures" => options.captures = true,
                "--keep" => options.keep = true,
                "--plain" => options.plain = true,
                unknown if unknown.starts_with("--") => return None,
                _ if options.command.is_empty() => options.command = arg,
                _ => options.names.push(arg),
            }
        }
        Some(options)
    }
}

fn main() -> ExitCode {
    let Some(options) = Options::parse(env::args().skip(1)) else {
        return usage();
    };
    let result = match (options.command.as_str(), options.names.as_slice()) {
        ("run", _) => run(&options),
        ("selftest", _) => selftest(&options),
        ("bench", _) => bench(&options),
        ("install", _) => install(&options),
        ("list", []) => list(),
        // Started by a session, inside its isolation.
        ("run-job", [job]) => Job::load(Path::new(job))
            .and_then(|job| job.run())
            .map(|()| true),
        _ => return usage(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print_status(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    print_status(USAGE);
    ExitCode::from(2)
}

/// Prints progress and errors to standard error.
fn print_status(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints results to standard output.
fn print_result(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn selected_clients(options: &Options) -> Result<Vec<Client>> {
    let mut clients = Client::all()?;
    if let Some(name) = options
        .names
        .iter()
        .find(|name| !clients.iter().any(|client| is_named(client, name)))
    {
        return Err(Error::NoClient(name.clone()));
    }
    clients.retain(|client| {
        if options.names.is_empty() {
            options.all || client.pin.only_named.is_none()
        } else {
            options.names.iter().any(|name| is_named(client, name))
        }
    });
    if options.latest {
        for client in &mut clients {
            client.pin.version = latest_version(&client.package())?;
        }
    }
    Ok(clients)
}

/// A client is named by its slug, with its variants, or by the name of one of them.
fn is_named(client: &Client, name: &str) -> bool {
    client.slug() == name || client.name() == name
}

fn locate_harness(options: &Options) -> Result<Harness> {
    let mut harness = Harness::locate()?;
    harness.keep = options.keep;
    if options.plain {
        harness.isolation = Isolation::Plain("--plain".to_owned());
    }
    if let Isolation::Plain(why) = &harness.isolation {
        print_status(&format!(
            "no network namespace ({why}): using dead proxies instead\n"
        ));
    }
    Ok(harness)
}

fn copy_program(options: &Options) -> Result<Program> {
    let binary = options.binary.clone().or_else(find_newest_build);
    let binary = binary.ok_or(Error::NotBuilt("anyhook"))?;
    print_status(&format!("anyhook: {}\n", binary.display()));
    Program::copy_of(&binary)
}

fn run(options: &Options) -> Result<bool> {
    let harness = locate_harness(options)?;
    let program = copy_program(options)?;
    let mut reports = Vec::new();
    let mut shapes = Vec::new();
    let mut situations = Situation::all()?;
    if let Some(name) = options
        .situations
        .iter()
        .find(|name| !situations.iter().any(|known| known.name == **name))
    {
        return Err(Error::NoSituation(name.clone()));
    }
    situations
        .retain(|one| options.situations.is_empty() || options.situations.contains(&one.name));
    for client in &selected_clients(options)? {
        print_status(&format!("{} {} …\n", client.name(), client.pin.version));
        let mut report = ClientReport {
            client: client.name(),
            version: client.pin.version.clone(),
            seconds: 0.0,
            checks: Vec::new(),
            note: client.expect.no_adapter.clone(),
            error: None,
        };
        // Installing does not count as session time.
        let done = harness.cache.install_client(client).and_then(|()| {
            let began = Instant::now();
            let done = run_checks(
                &harness,
                client,
                &program,
                &situations,
                options,
                &mut shapes,
            );
            report.seconds = began.elapsed().as_secs_f64();
            done
        });
        match done {
            Ok(checks) => report.checks = checks,
            Err(error) => report.error = Some(error.to_string()),
        }
        print_status(&report.summary());
        if let Some(folder) = &options.results {
            report.store(folder)?;
        }
        reports.push(report);
    }
    print_result(&render_table(&reports));
    if !shapes.is_empty() {
        print_result(&format!(
            "\npayloads that differ from their captures:\n{}",
            shapes.concat()
        ));
    }
    if let Some(path) = &options.proof {
        let stored = options.results.as_ref();
        let stored = stored.map(|folder| {
            Client::all().and_then(|clients| ClientReport::load_stored(folder, &clients))
        });
        let stored = stored.transpose()?;
        page::write_page(path, stored.as_ref().unwrap_or(&reports), &situations)?;
    }
    Ok(!reports.is_empty() && reports.iter().all(ClientReport::has_passed))
}

fn run_checks(
    harness: &Harness,
    client: &Client,
    program: &Program,
    situations: &[Situation],
    options: &Options,
    shapes: &mut Vec<String>,
) -> Result<Vec<Check>> {
    let kept =
        |name: &str, folder: &Path| print_status(&format!("  {name}: {}\n", folder.display()));
    let mut checks = Vec::new();
    if client.only_situations().is_none() && options.situations.is_empty() {
        let (smoke_checks, outcome) = smoke(harness, client)?;
        checks = smoke_checks;
        if let Some(folder) = outcome.sandbox.kept_folder() {
            kept("smoke", folder);
        }
        for change in captures::compare_with_stored(client.slug(), &outcome, options.captures)? {
            shapes.push(format!("{}: {change}\n", client.name()));
        }
    }
    if client.expect.no_adapter.is_none() {
        let proof = Proof {
            harness,
            client,
            program,
        };
        let jobs = options.jobs.unwrap_or(2);
        checks.extend(proof.run(situations, !options.situations.is_empty(), jobs, &kept)?);
    }
    Ok(checks)
}

/// Breaks renderings as expect.toml says and requires the checks to fail.
fn selftest(options: &Options) -> Result<bool> {
    let harness = locate_harness(options)?;
    let program = copy_program(options)?;
    let mut good = true;
    for client in &selected_clients(options)? {
        let proof = Proof {
            harness: &harness,
            client,
            program: &program,
        };
        if client.expect.sabotage.is_empty() {
            continue;
        }
        let failed = proof.run_control()?;
        if !failed.is_empty() {
            good = false;
            let failed = failed.join(", ");
            print_result(&format!(
                "{}: fails without sabotage: {failed}\n",
                client.slug()
            ));
        }
        for sabotage in &client.expect.sabotage {
            let unnoticed = proof.run_sabotaged(sabotage)?;
            good &= unnoticed.is_empty();
            let verdict = if unnoticed.is_empty() {
                "noticed".to_owned()
            } else {
                format!("NOT NOTICED by {}", unnoticed.join(", "))
            };
            print_result(&format!(
                "{}: {}: {verdict}\n",
                client.slug(),
                sabotage.name
            ));
        }
    }
    Ok(good)
}

/// The clients whose entries, or generated program, ask the daemon.
const DAEMON_CLIENTS: [&str; 4] = ["claude-code", "opencode", "kilo", "pi"];
/// What the daemon may add to a tool call, as a share of what starting the program adds.
const MAX_DAEMON_SHARE: f64 = 1.0 / 3.0;

fn bench(options: &Options) -> Result<bool> {
    let harness = locate_harness(options)?;
    let program = copy_program(options)?;
    let mut clients = selected_clients(options)?;
    if options.names.is_empty() {
        clients.retain(|client| DAEMON_CLIENTS.contains(&client.name().as_str()));
    }
    let mut rows = vec![
        [
            "client",
            "ms without",
            "by process",
            "via daemon",
            "daemon adds",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut good = !clients.is_empty();
    for client in &clients {
        print_status(&format!("{} {} …\n", client.name(), client.pin.version));
        let proof = Proof {
            harness: &harness,
            client,
            program: &program,
        };
        let cost = proof.tool_call_cost()?;
        let share = cost.daemon_share();
        let is_expected = DAEMON_CLIENTS.contains(&client.name().as_str());
        let holds = share <= MAX_DAEMON_SHARE;
        good &= holds || !is_expected;
        let verdict = match (is_expected, holds) {
            (false, _) => "starts the program",
            (true, true) => "at most a third",
            (true, false) => "TOO MUCH",
        };
        rows.push(vec![
            client.name(),
            format!("{:.1}", cost.without),
            format!("× {:.2}", cost.by_process / cost.without),
            format!("× {:.2}", cost.by_daemon / cost.without),
            format!("{share:.2} of the process"),
            verdict.to_owned(),
        ]);
    }
    print_result(&align_columns(&rows));
    Ok(good)
}

fn install(options: &Options) -> Result<bool> {
    let harness = Harness::locate()?;
    for client in selected_clients(options)? {
        print_status(&format!("{} {} …\n", client.slug(), client.pin.version));
        harness.cache.install_client(&client)?;
    }
    Ok(true)
}

fn list() -> Result<bool> {
    let harness = Harness::locate()?;
    let mut rows = vec![
        ["client", "package", "version", "installed", "note"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for client in Client::all()? {
        let installed = if harness.cache.is_installed(&client.package()) {
            "yes"
        } else {
            "no"
        };
        rows.push(vec![
            client.slug().to_owned(),
            client.package().name,
            client.pin.version.clone(),
            installed.to_owned(),
            client.pin.only_named.clone().unwrap_or_default(),
        ]);
    }
    print_result(&align_columns(&rows));
    Ok(true)
}
