//! Built-in guards, `if`, `mode: observe` and exceptions, through the real binary.
#![cfg(test)]

mod agents;
mod allow_once;
mod approve;
mod budget;
mod check;
mod conditions;
mod dispatch;
mod observe;
mod presets;
mod support;
mod trust;
