//! `anyhook convert`: translates one agent's hook config to another's.

mod input;
mod output;
mod scripts;
mod started_programs;

use std::path::PathBuf;

use anyhook_agents::Adapter;
use anyhook_agents::spec::ConfigShape;
use anyhook_convert::{
    ConversionOptions, ConversionSource, ConversionTarget, ConversionWarning, ConvertError,
    WarningSeverity, convert,
};
use anyhook_install::command::BridgeCommand;
use anyhook_model::hook::{SPEC, SPEC_0_1};
use anyhook_util::env;
use anyhow::{anyhow, bail};
use serde_json::{Value, json};

use crate::cli::CommandStatus;
use crate::progress::Progress;
use crate::render::{Terminal, counted};
use crate::table;
use input::ConvertInput;

/// Convert one agent's hook config to another's
///
/// Prints the converted config to stdout, and to stderr what it cannot carry over.
#[derive(Clone, clap::Args)]
#[command(after_help = "Examples:
  anyhook convert .claude/settings.json --to cursor
  anyhook convert .claude/settings.json --to all
  anyhook convert .anyhook/hooks.yaml --to codex -o . --merge")]
pub(crate) struct ConvertArgs {
    /// A config file, a folder of config files, or `-` for stdin
    #[arg(default_value = "-")]
    input: String,
    /// The agent that the config belongs to, `canonical` or `contract` [default: detected from path and content]
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// The agent to convert to, `canonical`, `contract`, or `all` for a table of what each agent would lose
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// An older file format of the target, if it has several
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Write to this file, or to the agent's usual config file in this folder
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Add the hooks to an existing file and keep its content
    #[arg(long, requires = "output")]
    merge: bool,
    /// Overwrite an existing file
    #[arg(long, requires = "output", conflicts_with = "merge")]
    force: bool,
    /// Write nothing; exit with 1 if a file is not what would be written, for CI
    #[arg(long, requires = "output", conflicts_with = "force")]
    check: bool,
    /// Write a canonical manifest for readers of this version of the format
    #[arg(long, value_name = "VERSION", value_parser = ["1.0", "0.1"], default_value = "1.0")]
    spec: String,
    /// Leave `dialect` out of a canonical manifest, for programs that you will change to its format
    #[arg(long, conflicts_with = "keep_dialect")]
    drop_dialect: bool,
    /// The default; accepted for older scripts
    #[arg(long, hide = true)]
    keep_dialect: bool,
    /// Exit with 1 on any warning
    #[arg(long)]
    strict: bool,
    /// Exit with 0 although a hook protects less than before or was left out
    #[arg(long, conflicts_with = "strict")]
    allow_loss: bool,
    /// Print the output and warnings as one JSON object
    #[arg(long)]
    json: bool,
}

/// The manifest's folder has no counterpart in an agent's own config.
const BRIDGE_VARIABLES: [(&str, &str); 2] = [
    (env::ANYHOOK_PROJECT_DIR.name, "{project}"),
    (env::ANYHOOK_MANIFEST_DIR.name, ""),
];

pub(crate) fn run(args: &ConvertArgs, terminal: &Terminal) -> anyhow::Result<CommandStatus> {
    let mut args = args.clone();
    if args.to != "canonical" && args.to != "all" {
        output::use_file_with_hooks(super::agents::find(&args.to)?, &mut args);
    }
    let args = &args;
    let input = ConvertInput::load(&args.input, terminal.is_stderr_coloured && !args.json)?;
    let mut source = match input.decode(args.from.as_deref()) {
        Err(error) if args.json => return print_json_error(terminal, &[], &format!("{error:#}")),
        decoded => decoded?,
    };
    source.leave_out_bridge(|hook| {
        let command = hook.handler.command.as_deref();
        command.and_then(BridgeCommand::parse).is_some()
    });
    let script = |command: &str| input.script(command);
    let folder = input.folder_in_repository();
    let options = ConversionOptions {
        script: Some(&script),
        drop_dialect: args.drop_dialect,
        bridge_variables: &BRIDGE_VARIABLES,
        folder_in_repository: folder.as_deref(),
    };
    if args.to == "all" {
        return compare_all(args, &source, &options, terminal);
    }
    let (adapter, target) = target(&args.to, args.variant.as_deref())?;
    let mut conversion = match convert(&source, target, &options) {
        Ok(conversion) => conversion,
        Err(error) => return print_refusal(args, terminal, &error, source.manifest.hooks.len()),
    };
    match (args.spec.as_str(), adapter) {
        ("0.1", Some(_)) => {
            bail!("`--spec` is for `--to canonical`: agents have formats of their own")
        }
        ("0.1", None) => use_version_0_1(&mut conversion.document),
        (_, None) => set_spec(&mut conversion.document, SPEC),
        _ => {}
    }
    let summary = Summary::new(
        &conversion.warnings,
        conversion.carried,
        source.manifest.hooks.len(),
    );
    let mut failure = summary.failure(args);
    let files = output::files(adapter, &conversion.document, args);
    if let Some(path) = &args.output {
        let changed = output::write(path, adapter, args, &conversion, &files)?;
        if let (true, Some(path)) = (args.check, changed.first()) {
            let path = path.display();
            let how = if args.merge { "no option" } else { "`--force`" };
            let outdated =
                format!("`{path}` is out of date; run this again with {how} instead of `--check`");
            failure = failure.or(Some(outdated));
        }
        for path in changed.iter().filter(|_| !args.json && !args.check) {
            terminal.note(&format!("wrote {}", path.display()));
        }
    }
    if args.json {
        let shape = adapter.map(|adapter| adapter.config(args.variant.as_deref()).shape);
        let output = match (shape, files.as_slice()) {
            (Some(ConfigShape::Plugin), [file]) => json!(file.text),
            _ => conversion.document.clone(),
        };
        let mut report =
            json!({"output": output, "warnings": conversion.warnings, "verified": true});
        if let (Some(report), Some(failure)) = (report.as_object_mut(), &failure) {
            report.insert("error".to_owned(), json!(failure));
        }
        terminal.json(&report)?;
    } else {
        if args.output.is_none() {
            for file in &files {
                if let (Some(name), true) = (&file.name, files.len() > 1) {
                    terminal.line(&format!("# {name}"));
                }
                terminal.text(&file.text);
            }
        }
        print_warnings(terminal, &conversion.warnings);
        terminal.note(&summary.to_string());
        if let Some(failure) = &failure {
            terminal.error(failure);
        }
    }
    Ok(CommandStatus::success_if(failure.is_none()))
}

/// How a conversion went.
struct Summary {
    carried: usize,
    total: usize,
    /// Findings that are critical or worse.
    critical: usize,
    warnings: usize,
}

impl Summary {
    fn new(warnings: &[ConversionWarning], carried: usize, total: usize) -> Self {
        let count = |is_counted: fn(WarningSeverity) -> bool| {
            let severities = warnings.iter().map(|warning| warning.severity);
            severities.filter(|severity| is_counted(*severity)).count()
        };
        Self {
            carried,
            total,
            critical: count(|severity| severity >= WarningSeverity::Critical),
            warnings: count(|severity| severity == WarningSeverity::Warning),
        }
    }

    /// Why the command fails although there is output.
    fn failure(&self, args: &ConvertArgs) -> Option<String> {
        if self.critical > 0 && !args.allow_loss {
            let what = counted(self.critical, "critical finding");
            return Some(format!(
                "{what}: hooks protect less than before; pass `--allow-loss` to accept that"
            ));
        }
        let has_losses = self.critical + self.warnings > 0;
        (args.strict && has_losses).then(|| "there are warnings, and `--strict` is set".to_owned())
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            carried,
            total,
            critical,
            warnings,
        } = self;
        let hooks = counted(*total, "hook");
        write!(formatter, "{carried} of {hooks} carried")?;
        if *critical > 0 {
            write!(formatter, "; {critical} critical")?;
        }
        if *warnings > 0 {
            write!(formatter, "; {}", counted(*warnings, "warning"))?;
        }
        Ok(())
    }
}

/// Turns a manifest of version 1.0 into one of version 0.1, which differs in its `spec` and in
/// the name of macOS. Everything else that 1.0 has, readers of 0.1 keep as unknown fields.
fn use_version_0_1(manifest: &mut Value) {
    set_spec(manifest, SPEC_0_1);
    let hooks = manifest.get_mut("hooks").and_then(Value::as_array_mut);
    for hook in hooks.into_iter().flatten() {
        let platform = hook.pointer_mut("/handler/platform");
        if let Some(platform) = platform.and_then(Value::as_object_mut)
            && let Some(command) = platform.shift_remove("osx")
        {
            platform.insert("darwin".to_owned(), command);
        }
    }
}

fn set_spec(manifest: &mut Value, version: &str) {
    if let Some(spec) = manifest.get_mut("spec") {
        *spec = json!(version);
    }
}

/// Explains why there is no output.
fn print_refusal(
    args: &ConvertArgs,
    terminal: &Terminal,
    error: &ConvertError,
    total: usize,
) -> anyhow::Result<CommandStatus> {
    let ConvertArgs { input, to, .. } = args;
    let (warnings, message) = match error {
        ConvertError::NothingLeft { warnings } if total == 0 => {
            let message = format!(
                "`{input}` has no hooks to convert; entries of anyhook itself are left out: convert the manifest instead"
            );
            (warnings, message)
        }
        ConvertError::NothingLeft { warnings } => {
            let message = format!("no hook of `{input}` can be converted to `{to}`");
            (warnings, message)
        }
        ConvertError::Unfaithful {
            differences,
            warnings,
        } => {
            let lines = differences.iter().map(|one| {
                format!(
                    "\n  hook {}, {}: `{}` became `{}`",
                    one.hook, one.field, one.expected, one.found
                )
            });
            let message = format!(
                "refusing to write: the converted config would differ from the source. \
                 This is a bug in anyhook:{}",
                lines.collect::<String>()
            );
            (warnings, message)
        }
    };
    if args.json {
        return print_json_error(terminal, warnings, &message);
    }
    print_warnings(terminal, warnings);
    terminal.note(&Summary::new(warnings, 0, total).to_string());
    terminal.error(&message);
    Ok(CommandStatus::Failure)
}

fn print_json_error(
    terminal: &Terminal,
    warnings: &[ConversionWarning],
    message: &str,
) -> anyhow::Result<CommandStatus> {
    terminal.json(
        &json!({"output": null, "warnings": warnings, "verified": false, "error": message}),
    )?;
    Ok(CommandStatus::Failure)
}

fn target(
    name: &str,
    variant: Option<&str>,
) -> anyhow::Result<(Option<&'static Adapter>, ConversionTarget)> {
    if name == "canonical" {
        return Ok((None, ConversionTarget::Canonical));
    }
    let adapter = super::agents::find(name)?;
    let variant = match variant {
        None => None,
        Some(wanted) => {
            let variants = adapter.spec.config.variant.keys();
            let known: Vec<&'static str> = variants.map(AsRef::as_ref).collect();
            let found = known.iter().find(|name| **name == wanted).copied();
            Some(found.ok_or_else(|| {
                anyhow!(
                    "{} has no format `{wanted}`; it has: {}",
                    adapter.spec.name,
                    known.join(", ")
                )
            })?)
        }
    };
    Ok((Some(adapter), ConversionTarget::Agent { adapter, variant }))
}

/// Prints the findings to stderr, those of the same hooks together.
fn print_warnings(terminal: &Terminal, warnings: &[ConversionWarning]) {
    // Each finding once, with all the hooks that it is about.
    let mut findings: Vec<(&ConversionWarning, Vec<usize>)> = Vec::new();
    for warning in warnings {
        let same = findings.iter_mut().find(|(other, hooks)| {
            other.field == warning.field
                && other.message == warning.message
                && other.severity == warning.severity
                && other.strategy == warning.strategy
                && hooks.is_empty() == warning.hook.is_none()
        });
        match same {
            Some((_, hooks)) => hooks.extend(warning.hook.filter(|hook| !hooks.contains(hook))),
            None => findings.push((warning, warning.hook.into_iter().collect())),
        }
    }
    findings.sort_by(|(_, left), (_, right)| left.cmp(right));
    for block in findings.chunk_by(|(_, left), (_, right)| left == right) {
        let hooks = block.first().map_or(&[][..], |(_, hooks)| hooks);
        let titles = hooks.iter().map(|hook| title(warnings, *hook));
        let titles: Vec<String> = titles.collect();
        let title = match titles.as_slice() {
            [] => "the file".to_owned(),
            titles => titles.join(", "),
        };
        terminal.note(&terminal.bold_err(&title));
        for (warning, _) in block {
            let strategy = match (warning.capability, warning.strategy) {
                (Some(capability), Some(strategy)) => format!(
                    " [{capability}: {}; change it with `degradation: {{ {capability}: … }}`]",
                    strategy.as_str()
                ),
                _ => String::new(),
            };
            let severity = terminal.severity(warning.severity.as_str());
            terminal.note(&format!(
                "  {severity} {}: {}{strategy}",
                warning.field, warning.message
            ));
        }
    }
}

/// A hook by its event, matcher and program, and its name if it has one.
fn title(warnings: &[ConversionWarning], hook: usize) -> String {
    let own = warnings.iter().find(|warning| warning.hook == Some(hook));
    let label = own.and_then(|own| own.label.clone());
    let label = label.unwrap_or_else(|| format!("hook {hook}"));
    match own.and_then(|own| own.name.as_ref()) {
        Some(name) => format!("{label} `{name}`"),
        None => label,
    }
}

/// Prints what each agent would lose, in one table.
fn compare_all(
    args: &ConvertArgs,
    source: &ConversionSource,
    options: &ConversionOptions<'_>,
    terminal: &Terminal,
) -> anyhow::Result<CommandStatus> {
    let total = source.manifest.hooks.len();
    let mut rows = Vec::new();
    let mut json = Vec::new();
    let mut has_losses = false;
    let progress = Progress::start("Converting", "agent");
    for adapter in anyhook_agents::all() {
        progress.advance();
        let target = ConversionTarget::Agent {
            adapter,
            variant: None,
        };
        let (carried, warnings) = match convert(source, target, options) {
            Ok(conversion) => (conversion.carried, conversion.warnings),
            Err(
                ConvertError::NothingLeft { warnings } | ConvertError::Unfaithful { warnings, .. },
            ) => (0, warnings),
        };
        let count = |severities: &[WarningSeverity]| {
            let all = warnings.iter();
            all.filter(|warning| severities.contains(&warning.severity))
                .count()
                .to_string()
        };
        has_losses |= warnings
            .iter()
            .any(|warning| warning.severity > WarningSeverity::Info);
        let worst: Vec<String> = warnings
            .iter()
            .filter(|warning| warning.severity >= WarningSeverity::Critical)
            .filter_map(|warning| Some(format!("{}:{}", warning.hook?, warning.field)))
            .collect();
        rows.push([
            (&adapter.spec.id).into(),
            format!("{carried}/{total}").into(),
            count(&[WarningSeverity::Critical, WarningSeverity::Error]).into(),
            count(&[WarningSeverity::Warning]).into(),
            count(&[WarningSeverity::Info]).into(),
            worst.join(" ").into(),
        ]);
        json.push(json!({"agent": adapter.spec.id, "hooks": total, "carried": carried, "warnings": warnings}));
    }
    drop(progress);
    if args.json {
        terminal.json(&json)?;
    } else {
        let titles = [
            "agent",
            "hooks",
            "critical",
            "warnings",
            "notes",
            "weakened or lost (hook:field)",
        ];
        table::print_at_margin(terminal, titles, rows);
    }
    Ok(CommandStatus::success_if(!(args.strict && has_losses)))
}
