ALTER TABLE anyhook_events ADD COLUMN user_id TEXT;
ALTER TABLE anyhook_events ADD COLUMN project_id TEXT;
ALTER TABLE anyhook_events ADD COLUMN workflow_id TEXT;
