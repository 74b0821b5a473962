//! Questions that wait for the user: list them, answer one.

use anyhook_model::Decision;
use anyhook_store::{EventRow, call_text};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::Request;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::app::App;
use crate::body;
use crate::host::OpenQuestion;

#[derive(Deserialize)]
struct AnswerBody {
    decision: Decision,
}

pub(crate) async fn list(State(app): State<App>) -> Result<Json<Value>, ApiError> {
    let questions = tokio::task::spawn_blocking(move || app.host.open_questions());
    let questions = questions.await;
    let questions = questions.map_err(|_| ApiError::internal("the questions could not be read"))?;
    let questions: Vec<Value> = questions.into_iter().filter_map(question_json).collect();
    Ok(Json(json!({ "approvals": questions })))
}

/// An event as the timeline shows it, with the time that is left.
fn question_json(question: OpenQuestion) -> Option<Value> {
    let row = EventRow::from_record(&question.record)?;
    let mut json = serde_json::to_value(row.summary).ok()?;
    let members = json.as_object_mut()?;
    // In full: what is cut off would be approved unseen.
    members.insert("detail".to_owned(), call_text(&question.record).into());
    members.insert("is_rewritten".to_owned(), question.is_rewritten.into());
    members.insert("seconds_left".to_owned(), question.seconds_left.into());
    Some(json)
}

pub(crate) async fn answer(
    State(app): State<App>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Json<Value>, ApiError> {
    let bytes = body::read_json_bytes(request, &app.config.limits).await?;
    let answer = serde_json::from_slice::<AnswerBody>(&bytes).ok();
    let decision = answer.map(|answer| answer.decision);
    let Some(decision @ (Decision::Allow | Decision::Deny)) = decision else {
        return Err(ApiError::bad_request(
            "decision",
            r#"send {"decision": "allow"} or {"decision": "deny"}"#,
        ));
    };
    let answered = tokio::task::spawn_blocking(move || app.host.answer_question(&id, decision));
    let answered = answered.await;
    let answered = answered.map_err(|_| ApiError::internal("the answer could not be written"))?;
    let effect = answered.map_err(ApiError::not_found)?;
    Ok(Json(json!({ "effect": effect })))
}
