/**
 * `node --import onesided/races program.js`: instruments the program's modules as they are loaded, so that the search
 * for races sees its loads and stores. `onesided run --races` does this by itself.
 */
import * as nodeModule from 'node:module';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { cannotSee, raceRuntime } from '../watch/tracked-memory.ts';
import { instrumented, instrumentedFile, isOwnAddon } from './instrumented-source.ts';
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
/** Has each worker that the library has started for itself. */
const OWN_WORKER = Symbol.for('onesided.worker');
const CALLS = Symbol.for('onesided.races.calls');

if (!runtime.instruments) {
  runtime.instruments = true;
  Object.defineProperty(globalThis, CALLS, { value: programCalls(runtime) });
  watchOthers();
  const { registerHooks } = nodeModule as { registerHooks?: RegisterHooks };
  if (registerHooks !== undefined) {
    registerHooks({
      load(url, context, next) {
        const loaded = next(url, context);
        const changed = instrumented(url, loaded.format, loaded.source, cannotSee);
        return changed === undefined ? loaded : { ...loaded, ...changed };
      },
    });
  } else {
    const { port1: own, port2: port } = new MessageChannel();
    nodeModule.register(new URL(import.meta.url.replace(/register(\.[jt]s)$/, 'hooks$1')), {
      data: { port },
      transferList: [port],
    });
    own.on('message', cannotSee);
    own.unref();
    // Before what else is done then: this comes first.
    process.on('exit', () => {
      for (let next = receiveMessageOnPort(own); next !== undefined; next = receiveMessageOnPort(own))
        cannotSee(next.message as string);
    });
    // Those hooks see no CommonJS.
    const { prototype } = nodeModule.Module as unknown as { prototype: CommonModule };
    const { _compile } = prototype;
    prototype._compile = function (source, file, ...more) {
      return _compile.call(this, instrumentedFile(file, source, cannotSee), file, ...more);
    };
  }
}

/** What is no module of this thread. */
function watchOthers(): void {
  process.on('worker', (worker) => {
    // Node has one for hooks.
    if (OWN_WORKER in worker || worker.constructor.name === 'InternalWorker') return;
    cannotSee('loads and stores in worker threads that the program has started');
  });
  const { dlopen } = process;
  process.dlopen = (module: object, file: string, ...flags: []) => {
    if (!isOwnAddon(file)) cannotSee(`${file}: loads and stores by native code`);
    dlopen.call(process, module, file, ...flags);
  };
}
