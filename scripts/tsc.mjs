/**
 * The compiler that checks and builds the project: `node scripts/tsc.mjs -p tsconfig.json`.
 *
 * It is TypeScript 7, which takes a fifth of the processor of TypeScript 6. That one stays for what needs the compiler
 * as a library, which 7 is not yet: typedoc, and the tests that read declarations.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const tsc = fileURLToPath(new URL('../node_modules/typescript-7/bin/tsc', import.meta.url));
const { status } = spawnSync(process.execPath, [tsc, ...process.argv.slice(2)], { stdio: 'inherit' });
process.exit(status ?? 1);
