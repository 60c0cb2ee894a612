"use strict";
// Starts `xla-emitters lsp` for HLO text and MLIR, and gives what it says to the editor.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("xla-emitters"), target = settings.get("target");
  const server = { command: settings.get("command"), args: ["lsp", ...(target ? ["--target", target] : [])] };
  const options = { documentSelector: [{ language: "hlo" }, { language: "xla-mlir" }] };
  client = new LanguageClient("xla-emitters", "xla-emitters", server, options);
  return client.start();
};

exports.deactivate = () => client?.stop();
