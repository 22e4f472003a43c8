// Runs a program for WebAssembly (make TARGET=wasm32) in Node.js: node run/wasi.mjs bin/run_export.wasm ARGUMENTS
// Names of files are either all relative to the current folder or all absolute.
import { readFileSync } from "node:fs";
import { WASI } from "node:wasi";

const args = process.argv.slice(2);
const preopens = args.some(one => one.startsWith("/")) ? { "/": "/" } : { ".": "." };
const wasi = new WASI({ version: "preview1", args, preopens, returnOnExit: true });
const module = await WebAssembly.compile(readFileSync(args[0]));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
