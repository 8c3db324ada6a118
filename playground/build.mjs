// Builds the page's program and style into the Python package.
//   node build.mjs           write them
//   node build.mjs --check   fail if what the package holds is not what these sources make
//   node build.mjs --tests   bundle the tests for node
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const packaged = join(here, "..", "src", "iclab", "report", "playground");

// The digest of everything that is built: Python's tests compare it without node (tests/report/test_playground.py).
function digest() {
  const hash = createHash("sha256");
  const files = readdirSync(join(here, "src"), { recursive: true }).filter((name) => /\.(tsx?|css)$/.test(name));
  for (const name of [...files.map((name) => `src/${name.replaceAll("\\", "/")}`), "package-lock.json"].sort()) {
    hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
  }
  return hash.digest("hex");
}

// The licences of what is bundled ask to go with every copy; they differ in the line that names the authors.
function licences() {
  const holders = new Map();
  for (const name of ["preact", "@preact/signals", "@preact/signals-core"]) {
    const text = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8").trim();
    const line = text.match(/^Copyright.*$/m)[0];
    const terms = text.replace(line, "").replace(/\n{3,}/g, "\n\n");
    holders.set(terms, [...(holders.get(terms) ?? []), `${name}: ${line}`]);
  }
  return [...holders].map(([terms, lines]) => `${lines.join("\n")}\n\n${terms}`).join("\n\n");
}

async function made(entry) {
  const banner = `/* Built from playground/ by "npm run build"; sources ${digest()} */`
    + (entry.endsWith("css") ? "" : `\n/* Contains:\n\n${licences()}\n*/`);
  const result = await build({
    entryPoints: [join(here, "src", entry)], bundle: true, minify: true, write: false, target: "es2022",
    format: "iife", jsx: "automatic", jsxImportSource: "preact", legalComments: "none", charset: "utf8",
  });
  // Inside a page's script element the text must not seem to end it.
  return `${banner}\n${result.outputFiles[0].text.replaceAll("</script", "<\\/script")}`;
}

if (process.argv.includes("--tests")) {
  rmSync(join(here, ".tests"), { recursive: true, force: true });
  const tests = readdirSync(join(here, "tests")).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => join(here, "tests", name)), bundle: true, platform: "node", format: "esm",
    outdir: join(here, ".tests"), outExtension: { ".js": ".mjs" }, jsx: "automatic", jsxImportSource: "preact",
  });
} else {
  for (const [entry, name] of [["main.tsx", "app.js"], ["style.css", "app.css"]]) {
    const text = await made(entry);
    const path = join(packaged, name);
    if (!process.argv.includes("--check")) {
      writeFileSync(path, text);
      console.log(`${name}: ${(text.length / 1024).toFixed(1)} KB`);
    } else if (readFileSync(path, "utf8") !== text) {
      console.error(`${name} in the package is not what these sources build: run npm run build`);
      process.exitCode = 1;
    }
  }
}
