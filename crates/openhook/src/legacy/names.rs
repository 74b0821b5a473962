//! The names that agents have given to the same thing, the surest first.

use super::EventGuess;
use crate::event_type;
use crate::names::squeeze;

pub(super) const SESSIONS: [&str; 16] = [
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

pub(super) const EVENTS: [&str; 9] = [
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

pub(super) const TOOLS: [&str; 5] = [
    "tool_name",
    "toolName",
    "tool-name",
    "tool",
    "mcp_tool_name",
];

pub(super) const CALL_IDS: [&str; 8] = [
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "toolUseId",
    "callID",
    "callId",
    "call_id",
    "execution_id",
];

pub(super) const CWDS: [&str; 5] = [
    "cwd",
    "workingDirectory",
    "working_directory",
    "workspace_dir",
    "directory",
];

pub(super) const ROOTS: [&str; 2] = ["workspace_roots", "workspaceRoots"];

pub(super) const TIMES: [&str; 2] = ["timestamp", "time"];

pub(super) const PROMPTS: [&str; 4] = ["prompt", "user_prompt", "userPrompt", "text"];

pub(super) const TRANSCRIPTS: [&str; 2] = ["transcript_path", "transcriptPath"];

pub(super) const MODELS: [&str; 3] = ["model", "model_name", "modelName"];

pub(super) const REASONS: [&str; 4] = ["reason", "final_status", "stop_reason", "stopReason"];

pub(super) const DURATIONS: [&str; 5] = [
    "duration_ms",
    "durationMs",
    "executionTimeMs",
    "execution_time_ms",
    "duration",
];

pub(super) const PATHS: [&str; 4] = ["file_path", "filePath", "path", "file"];

/// Objects that hold the fields of the event.
pub(super) const WRAPPERS: [&str; 15] = [
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
    INPUT,
];

/// What an in-process hook is given; for others, what a tool is given.
pub(super) const INPUT: &str = "input";

/// Objects inside those.
pub(super) const INNER_WRAPPERS: [&str; 4] = ["event", "payload", "properties", "info"];

/// The event that a native name stands for.
pub(crate) fn named(name: &str) -> Option<EventGuess> {
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
