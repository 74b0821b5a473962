//! What we write is what the published schema asks for.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use anyhook_testkit::codex::{Transcript, fixtures};
use jsonschema::Validator;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::trial;

fn validate(definition: &str, value: &Value) {
    static BUNDLE: OnceLock<Value> = OnceLock::new();
    static KNOWN: OnceLock<Mutex<HashMap<String, &'static Validator>>> = OnceLock::new();
    let bundle = BUNDLE.get_or_init(|| {
        let path = fixtures().join("schema/codex_app_server_protocol.schemas.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    });
    let validator = *KNOWN
        .get_or_init(Mutex::default)
        .lock()
        .unwrap()
        .entry(definition.to_owned())
        .or_insert_with(|| {
            let schema = json!({
                "$schema": bundle["$schema"],
                "$ref": format!("#/definitions/{definition}"),
                "definitions": bundle["definitions"],
            });
            Box::leak(Box::new(jsonschema::validator_for(&schema).unwrap()))
        });
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{value} is no {definition}: {errors:?}");
}

/// The result for a request of the server, and that it has no other members.
pub(crate) fn check_answer(request: &Value, result: &Value) {
    let (definition, members): (_, &[&str]) = match request["method"].as_str().unwrap() {
        "item/commandExecution/requestApproval" => {
            ("CommandExecutionRequestApprovalResponse", &["decision"])
        }
        "item/fileChange/requestApproval" => ("FileChangeRequestApprovalResponse", &["decision"]),
        "item/permissions/requestApproval" => (
            "PermissionsRequestApprovalResponse",
            &["permissions", "scope"],
        ),
        "mcpServer/elicitation/request" => (
            "McpServerElicitationRequestResponse",
            &["action", "content", "_meta"],
        ),
        "execCommandApproval" => ("ExecCommandApprovalResponse", &["decision"]),
        "applyPatchApproval" => ("ApplyPatchApprovalResponse", &["decision"]),
        other => panic!("{other} is not for hooks"),
    };
    validate(definition, result);
    for member in result.as_object().unwrap().keys() {
        assert!(members.contains(&member.as_str()), "{member}");
    }
}

/// A message that we send to a server: a request, a notification or an answer.
pub(crate) fn check_outgoing(message: &Value, requests: &[Value]) {
    assert!(message.get("jsonrpc").is_none());
    validate("JSONRPCMessage", message);
    match (message.get("method"), message.get("id")) {
        (Some(_), Some(_)) => validate("ClientRequest", message),
        (Some(_), None) => validate("ClientNotification", message),
        (None, Some(id)) => {
            validate("JSONRPCResponse", message);
            let request = requests
                .iter()
                .find(|request| request["id"] == *id)
                .unwrap();
            check_answer(request, &message["result"]);
        }
        (None, None) => panic!("{message} is no message"),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial(
        "schema::requests_in_the_fixtures_are_genuine",
        || {
            for transcript in Transcript::all() {
                // The seed has the shape of its time.
                if transcript.name != "seed" {
                    for request in transcript.approvals() {
                        validate("ServerRequest", &request);
                    }
                }
            }
        },
    )]
}
