// Makes the one script that a page holds, of the modules in src and the libraries in node_modules,
// and the libraries' notices. With --check, fails if that is not what the package holds.
import { build } from "esbuild";
import { readFileSync, readdirSync, existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "../fedhh/experiments/report/explorer/assets");

const result = await build({
  absWorkingDir: here,
  bundle: true,
  charset: "ascii",
  entryPoints: ["src/main.js"],
  format: "iife",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: ["chrome103", "firefox113"],
  write: false,
});
const style = await build({
  absWorkingDir: here,
  entryPoints: ["src/explorer.css"],
  minify: true,
  write: false,
});

/** The notices of every library whose code is in the script. */
function notices() {
  const folders = new Map();
  const used = Object.values(result.metafile.outputs)[0].inputs;
  for (const [path, { bytesInOutput }] of Object.entries(used)) {
    // A library may hold others; the innermost is whose code it is.
    const match = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)(?=\/)/.exec(path);
    if (match && bytesInOutput) folders.set(match[1], join(here, match[0]));
  }
  const parts = [...folders.keys()].sort().map((name) => {
    const folder = folders.get(name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no notice`);
    const notice = readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version} (${license})\n\n${notice}\n`;
  });
  const rule = `\n${"-".repeat(72)}\n\n`;
  return `explorer.js holds code of these libraries.\n${rule}${parts.join(rule)}`;
}

// A script's end inside the script would end it for the page.
const script = result.outputFiles[0].text.replaceAll("</script", "<\\/script");
const wanted = {
  "explorer.js": script,
  "explorer.css": style.outputFiles[0].text,
  "NOTICE.txt": notices(),
};
for (const [name, text] of Object.entries(wanted)) {
  const path = join(assets, name);
  if (!process.argv.includes("--check")) {
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
    console.error(`${name} is not what the sources make: run npm run build in web.`);
    process.exitCode = 1;
  }
}
