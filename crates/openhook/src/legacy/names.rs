//! The names that agents use for the same thing, the most specific first.

use super::EventGuess;
use crate::event_type;
use crate::names::squeeze;

pub(super) const SESSION_KEYS: [&str; 16] = [
    "session_id",
    "sessionId",
    "sessionID",
    "session-id",
    "conversation_id",
    "conversationId",
    "conversation-id",
    "thread_id",
    "threadId",
    "thread-id",
    "trajectory_id",
    "trajectoryId",
    "task_id",
    "taskId",
    "task-id",
    "chat_id",
];

pub(super) const EVENT_KEYS: [&str; 9] = [
    "hook_event_name",
    "hookEventName",
    "agent_action_name",
    "hookName",
    "hook_type",
    "event_name",
    "event",
    "hook",
    "type",
];

pub(super) const TOOL_KEYS: [&str; 5] = [
    "tool_name",
    "toolName",
    "tool-name",
    "tool",
    "mcp_tool_name",
];

pub(super) const CALL_ID_KEYS: [&str; 8] = [
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "toolUseId",
    "callID",
    "callId",
    "call_id",
    "execution_id",
];

pub(super) const CWD_KEYS: [&str; 5] = [
    "cwd",
    "workingDirectory",
    "working_directory",
    "workspace_dir",
    "directory",
];

pub(super) const ROOT_KEYS: [&str; 2] = ["workspace_roots", "workspaceRoots"];

pub(super) const TIME_KEYS: [&str; 2] = ["timestamp", "time"];

pub(super) const PROMPT_KEYS: [&str; 4] = ["prompt", "user_prompt", "userPrompt", "text"];

pub(super) const TRANSCRIPT_KEYS: [&str; 2] = ["transcript_path", "transcriptPath"];

pub(super) const MODEL_KEYS: [&str; 3] = ["model", "model_name", "modelName"];

pub(super) const REASON_KEYS: [&str; 4] = ["reason", "final_status", "stop_reason", "stopReason"];

pub(super) const DURATION_KEYS: [&str; 5] = [
    "duration_ms",
    "durationMs",
    "executionTimeMs",
    "execution_time_ms",
    "duration",
];

pub(super) const SESSION_DURATION_KEYS: [&str; 2] = ["session_duration_ms", "duration_ms"];

pub(super) const INPUT_TOKEN_KEYS: [&str; 2] = ["input_tokens", "inputTokens"];

pub(super) const OUTPUT_TOKEN_KEYS: [&str; 2] = ["output_tokens", "outputTokens"];

pub(super) const PATH_KEYS: [&str; 4] = ["file_path", "filePath", "path", "file"];

/// Objects that contain the fields of the event.
pub(super) const WRAPPER_KEYS: [&str; 15] = [
    "input_data",
    "preToolUse",
    "postToolUse",
    "tool_call",
    "tool_result",
    "taskStart",
    "taskComplete",
    "userPromptSubmit",
    "turn",
    "tool_info",
    "event",
    "payload",
    "data",
    "properties",
    INPUT_KEY,
];

/// The argument of an in-process hook; for others, the arguments of a tool.
pub(super) const INPUT_KEY: &str = "input";

/// Objects inside those.
pub(super) const INNER_WRAPPER_KEYS: [&str; 4] = ["event", "payload", "properties", "info"];

/// The event type for a native event name.
pub(crate) fn guess_event_type(name: &str) -> Option<EventGuess> {
    let (event_type, exact) = match squeeze(name).as_str() {
        "sessionstart" | "sessionstarted" | "sessioncreated" | "agentspawn" | "taskstart"
        | "threadstarted" | "conversationstart" => (event_type::SESSION_START, true),
        "agentstart" => (event_type::SESSION_START, false),
        "sessionend" | "sessionended" | "sessionshutdown" | "sessiondeleted" | "sessionclosed"
        | "taskcancel" => (event_type::SESSION_END, true),
        "stop"
        | "agentstop"
        | "agentend"
        | "agenterror"
        | "agentturncomplete"
        | "turncomplete"
        | "turncompleted"
        | "turnend"
        | "afteragent"
        | "sessionidle"
        | "taskcomplete"
        | "taskerror"
        | "stopfailure"
        | "postcascaderesponse"
        | "postcascaderesponsewithtranscript" => (event_type::SESSION_END, false),
        "userpromptsubmit"
        | "userpromptsubmitted"
        | "promptsubmit"
        | "promptsubmitted"
        | "beforesubmitprompt"
        | "preuserprompt"
        | "beforeagent"
        | "chatmessage" => (event_type::PROMPT_SUBMIT, true),
        "pretooluse"
        | "beforetool"
        | "beforetooluse"
        | "beforetoolcall"
        | "toolcall"
        | "toolstart"
        | "toolexecutebefore"
        | "toolexecutionstart"
        | "beforeshellexecution"
        | "beforemcpexecution"
        | "beforereadfile"
        | "preruncommand"
        | "prereadcode"
        | "prewritecode"
        | "premcptooluse" => (event_type::TOOL_START, true),
        "posttooluse"
        | "posttoolusefailure"
        | "aftertool"
        | "aftertooluse"
        | "aftertoolcall"
        | "toolresult"
        | "toolend"
        | "toolexecuteafter"
        | "toolexecutionend"
        | "aftershellexecution"
        | "aftermcpexecution"
        | "postruncommand"
        | "postreadcode"
        | "postmcptooluse" => (event_type::TOOL_END, true),
        "afterfileedit" | "postwritecode" | "filewrite" | "fileedited" => {
            (event_type::FILE_WRITE, true)
        }
        _ => return None,
    };
    Some(EventGuess { event_type, exact })
}
