//! A configured guard: `anyhook guard NAME [options]`.

use anyhook_model::suggest::nearest;
use anyhook_model::{Diagnostic, HookEvent};

use crate::context::GuardContext;
use crate::definitions::{GuardDefinition, definition, definitions};
use crate::finding::{GuardError, GuardFinding};
use crate::input::GuardInput;
use crate::judges::budget::BudgetLimits;
use crate::judges::{
    GuardOptions, Objections, budget, cloud, database, filesystem, git, network, own_files,
    path_lists, remote_code, secrets,
};
use crate::rules::{RuleSet, check_rules};

#[derive(Debug, Clone)]
pub struct Guard {
    definition: &'static GuardDefinition,
    options: GuardOptions,
    rules: RuleSet,
    /// Of the guard `budget`.
    budget: Option<BudgetLimits>,
}

/// The rules of a text, or what is wrong with it.
pub type CheckedRules = (Option<RuleSet>, Vec<Diagnostic>);

/// Reads the words after `anyhook guard`. `load` reads a rules file.
pub fn parse_guard(
    words: &[String],
    load: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Guard, GuardError> {
    parse_guard_with(words, load, &check_rules)
}

/// As [`parse_guard`]; `check` is [`check_rules`], or knows its result.
pub fn parse_guard_with(
    words: &[String],
    load: &dyn Fn(&str) -> Result<String, String>,
    check: &dyn Fn(&str) -> CheckedRules,
) -> Result<Guard, GuardError> {
    let names = || definitions().iter().map(|guard| guard.name);
    let all = || names().collect::<Vec<_>>().join(", ");
    let Some((name, rest)) = words.split_first() else {
        return Err(GuardError::usage_help(
            "no guard is named",
            format!("name one of {}", all()),
        ));
    };
    let definition = definition(name).ok_or_else(|| {
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", all()),
        };
        GuardError::usage_help(format!("unknown guard `{name}`"), help)
    })?;
    let options = parse_options(definition, rest)?;
    let mut rules = RuleSet::default();
    if definition.name == "rules" {
        if !options.has("--file") && !options.has("--rule") {
            return Err(GuardError::usage_help(
                "the guard `rules` has no rules",
                "pass `--file <FILE>` or `--rule <YAML>`",
            ));
        }
        for file in options.all("--file") {
            let text = load(file)
                .map_err(|error| GuardError::usage(format!("could not read `{file}`: {error}")))?;
            rules.extend(load_rules(file, &text, check)?);
        }
        for rule in options.all("--rule") {
            let text = format!("rules: [{rule}]");
            let text = if rule.trim_start().starts_with('{') {
                text
            } else {
                // A block: one rule, indented as an item.
                format!("rules:\n  - {}", rule.trim().replace('\n', "\n    "))
            };
            rules.extend(load_rules("--rule", &text, check)?);
        }
    }
    let budget = (definition.name == "budget").then(|| BudgetLimits::parse(&options));
    Ok(Guard {
        definition,
        budget: budget.transpose()?,
        options,
        rules,
    })
}

fn load_rules(
    file: &str,
    text: &str,
    check: &dyn Fn(&str) -> CheckedRules,
) -> Result<RuleSet, GuardError> {
    let (rules, findings) = check(text);
    rules.ok_or_else(|| GuardError::Rules {
        file: file.to_owned(),
        text: text.to_owned(),
        findings,
    })
}

fn parse_options(
    definition: &'static GuardDefinition,
    words: &[String],
) -> Result<GuardOptions, GuardError> {
    let mut options = GuardOptions::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let Some(option) = definition.options.iter().find(|option| option.name == name) else {
            let names = || definition.options.iter().map(|option| option.name);
            let help = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its options are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(GuardError::usage_help(
                format!("the guard `{}` has no option `{name}`", definition.name),
                help,
            ));
        };
        let Some(value) = attached.or_else(|| words.next().cloned()) else {
            return Err(GuardError::usage_help(
                format!("`{name}` needs a value"),
                format!("write `{name} <{}>`", option.value.unwrap_or("VALUE")),
            ));
        };
        if name == "--decision" {
            let possible = option.value.unwrap_or_default();
            if !possible.split('|').any(|word| word == value) {
                let words = possible.replace('|', "`, `");
                return Err(GuardError::usage_help(
                    format!("`--decision {value}` is not possible"),
                    format!("write one of `{words}`; a guard never allows"),
                ));
            }
        }
        options.values.push((option.name, value));
    }
    Ok(options)
}

impl Guard {
    pub fn name(&self) -> &str {
        self.definition.name
    }

    pub fn definition(&self) -> &'static GuardDefinition {
        self.definition
    }

    /// The limits of a `budget` guard.
    pub fn budget(&self) -> Option<BudgetLimits> {
        self.budget
    }

    /// The rules of a `rules` guard.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    pub fn judge(&self, event: &HookEvent, context: &GuardContext) -> Option<GuardFinding> {
        self.judge_input(&GuardInput::new(event, context))
    }

    /// The strongest objection to the call, if there is one.
    pub fn judge_input(&self, input: &GuardInput<'_>) -> Option<GuardFinding> {
        let mut found = Objections {
            guard: self.definition.name,
            options: &self.options,
            strongest: None,
        };
        if let Some(limits) = self.budget {
            budget::judge(limits, input, &mut found);
            return found.strongest;
        }
        match self.definition.name {
            "filesystem" => filesystem::judge(input, &mut found),
            "git" => git::judge(input, &mut found),
            "secrets" => secrets::judge(input, &mut found),
            "remote-code" => remote_code::judge(input, &mut found),
            "network" => network::judge(input, &mut found),
            "paths" => path_lists::judge(input, &mut found),
            "self" => own_files::judge(input, &mut found),
            "database" => database::judge(input, &mut found),
            "cloud" => cloud::judge(input, &mut found),
            _ => return self.rules.judge(input),
        }
        found.strongest
    }
}
