//! Checks that any JSON can be decoded as an agent's payload and encoded for another agent.

use serde_json::Value;

pub(crate) fn check(data: &[u8]) {
    let Ok(payload) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let agents: Vec<_> = anyhook_agents::all().collect();
    for (index, adapter) in agents.iter().enumerate() {
        let _ = adapter.recognises(&payload);
        let hint = adapter
            .spec
            .events
            .get(data.len() % adapter.spec.events.len().max(1));
        for hint in [None, hint.map(|event| event.native.as_ref())] {
            let Ok(decoded) = adapter.decode(&payload, hint) else {
                continue;
            };
            let _ = adapter.encode(&decoded.event, None);
            let other = agents[(index + data.len()) % agents.len()];
            let _ = other.encode_parts(&decoded.event, None, |_| true);
        }
    }
}
