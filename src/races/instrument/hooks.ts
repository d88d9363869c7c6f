/** The hook of Node's thread for hooks, where Node has no others: instruments modules as they are loaded. */
import type { MessagePort } from 'node:worker_threads';
import { instrumented } from './instrumented-source.ts';

interface Loaded {
  readonly format: string;
  readonly source: unknown;
}

type NextLoad = (url: string, context: unknown) => Promise<Loaded>;

let unseen: MessagePort | undefined;

export function initialize({ port }: { readonly port: MessagePort }): void {
  unseen = port;
}

export async function load(url: string, context: unknown, nextLoad: NextLoad): Promise<Loaded> {
  const loaded = await nextLoad(url, context);
  const changed = instrumented(url, loaded.format, loaded.source, (text) => unseen?.postMessage(text));
  return changed === undefined ? loaded : { ...loaded, ...changed };
}
