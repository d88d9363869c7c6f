/**
 * Checks the package as it would be published, without building what is slow:
 *
 *     node scripts/check-package.mjs
 *
 * publint and @arethetypeswrong/cli on the packed tarball; the version written down in the sources; that installing
 * builds nothing (no binding.gyp, no install script); that no source map points to what is not there; that README's
 * links lead to files of the package.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const wrong = [];
const folder = mkdtempSync(join(tmpdir(), 'onesided-package-'));
try {
  const [{ filename, files }] = pack();
  const tarball = join(folder, filename);
  await lint(tarball);
  types(tarball);
  contents(files.map(({ path }) => path));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const line of wrong) console.error(`package: ${line}`);
if (wrong.length > 0) process.exit(1);

/** Without prepack: dist/ was built by whoever calls this. */
function pack() {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm pack failed: ${stderr}`);
  return JSON.parse(stdout);
}

async function lint(tarball) {
  const { buffer } = new Uint8Array(readFileSync(tarball));
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  for (const message of messages) wrong.push(`publint: ${formatMessage(message, pkg, { color: false })}`);
}

/**
 * `require` loads the same modules as `import`, from Node 20.19 on: a module of its own for it would be a second copy
 * of all state.
 */
function types(tarball) {
  const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
  const args = [attw, tarball, '--profile', 'esm-only', '--format', 'ascii', '--no-color', '--no-emoji'];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) wrong.push(`are the types wrong?\n${stdout}${stderr}`);
}

function contents(files) {
  const [, version] = /VERSION = '([^']*)'/.exec(readFileSync(join(root, 'src/version.ts'), 'utf8')) ?? [];
  if (version !== own.version) wrong.push(`src/version.ts says ${version}, package.json ${own.version}`);
  if (files.includes('binding.gyp')) wrong.push('with binding.gyp in it, npm runs node-gyp wherever it is installed');
  for (const script of ['preinstall', 'install', 'postinstall']) {
    if (own.scripts[script] !== undefined) wrong.push(`it has a script "${script}": installing runs nothing`);
  }
  if (own.dependencies !== undefined) wrong.push('it has dependencies: installing a tarball must work offline');
  for (const file of files.filter((name) => /^dist\/.*\.js$/.test(name))) {
    if (/^\/\/# sourceMappingURL=/m.test(readFileSync(join(root, file), 'utf8')))
      wrong.push(`${file} has a source map`);
  }
  const links = readFileSync(join(root, 'README.md'), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g);
  for (const [, target] of links) {
    const there = files.some((file) => file === target || file.startsWith(`${target.replace(/\/$/, '')}/`));
    if (!there) wrong.push(`README.md links to ${target}, which is not in the package`);
  }
}
