/**
 * `node --import onesided/races program.js`: instruments the program's modules as they are loaded, so that the search
 * for races sees its loads and stores. `onesided run --races` does this by itself.
 */
import * as nodeModule from 'node:module';
import { raceRuntime } from '../watch/tracked-memory.ts';
import { instrumented, instrumentedFile } from './instrumented-source.ts';
import { programCalls } from './program-calls.ts';

interface Loaded {
  readonly format: string;
  readonly source: unknown;
}

type Load = (url: string, context: unknown, next: (url: string, context: unknown) => Loaded) => Loaded;
type RegisterHooks = (hooks: { load: Load }) => void;
interface CommonModule {
  _compile(this: unknown, source: string, file: string, ...more: unknown[]): unknown;
}

const runtime = raceRuntime();
const CALLS = Symbol.for('onesided.races.calls');

if (!runtime.instruments) {
  runtime.instruments = true;
  Object.defineProperty(globalThis, CALLS, { value: programCalls(runtime) });
  const { registerHooks } = nodeModule as { registerHooks?: RegisterHooks };
  if (registerHooks !== undefined) {
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context);
        const changed = instrumented(url, loaded.format, loaded.source);
        return changed === undefined ? loaded : { ...loaded, ...changed };
      },
    });
  } else {
    nodeModule.register(new URL(import.meta.url.replace(/register(\.[jt]s)$/, 'hooks$1')));
    // Those hooks see no CommonJS.
    const { prototype } = nodeModule.Module as unknown as { prototype: CommonModule };
    const { _compile } = prototype;
    prototype._compile = function (source, file, ...more) {
      return _compile.call(this, instrumentedFile(file, source), file, ...more);
    };
  }
}
