/**
 * Module hooks for support/types.mjs: the compiler turns each .ts file into JavaScript, without looking at types.
 * Loading the compiler takes time, so what it made is kept in build/, under the hash of the source.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { threadId } from 'node:worker_threads';

const cache = new URL('../../build/test-programs/', import.meta.url);
let temporaries = 0;

async function compile(fileName, text) {
  const { transformSync } = await import('rolldown/utils');
  const { code, errors, map } = transformSync(fileName, text, { lang: 'ts', target: 'es2022', sourcemap: true });
  if (errors.length > 0) throw errors[0];
  const source = Buffer.from(JSON.stringify(map)).toString('base64');
  return `${code}\n//# sourceMappingURL=data:application/json;base64,${source}\n`;
}

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
  const fileName = fileURLToPath(url);
  const text = readFileSync(fileName, 'utf8');
  const kept = new URL(`${createHash('sha256').update(fileName).update(text).digest('hex')}.js`, cache);
  let source;
  try {
    source = readFileSync(kept, 'utf8');
  } catch {
    source = await compile(fileName, text);
    mkdirSync(cache, { recursive: true });
    // Others may be at it too: nobody reads half a file.
    const temporary = new URL(`${process.pid}-${threadId}-${temporaries++}.tmp`, cache);
    writeFileSync(temporary, source);
    renameSync(temporary, kept);
  }
  return { format: 'module', source, shortCircuit: true };
}
