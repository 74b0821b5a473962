#!/usr/bin/env node
// Starts the program of this platform's package. `anyhook install` copies that
// program, so that agents start neither node nor a file of this folder.
"use strict";
const { spawnSync } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");

const name = `@anyhook/${process.platform}-${process.arch}`;
let folder;
try {
  folder = path.dirname(require.resolve(`${name}/package.json`));
} catch {
  console.error(`anyhook: the package ${name} is not installed.
Either this platform is not supported, or npm left out optional dependencies:
try \`npm install --include=optional anyhook\`.`);
  process.exit(1);
}
const program = path.join(folder, "bin", process.platform === "win32" ? "anyhook.exe" : "anyhook");
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`anyhook: could not start ${program}: ${ended.error.message}`);
  process.exit(1);
}
process.exit(ended.status ?? 128 + (constants.signals[ended.signal] ?? 0));
