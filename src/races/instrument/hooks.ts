/** The hook of Node's thread for hooks, where Node has no others: instruments modules as they are loaded. */
import { instrumented } from './instrumented-source.ts';

interface Loaded {
  readonly format: string;
  readonly source: unknown;
}

type NextLoad = (url: string, context: unknown) => Promise<Loaded>;

export async function load(url: string, context: unknown, nextLoad: NextLoad): Promise<Loaded> {
  const loaded = await nextLoad(url, context);
  const changed = instrumented(url, loaded.format, loaded.source);
  return changed === undefined ? loaded : { ...loaded, ...changed };
}
