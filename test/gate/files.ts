/** Lists of test files: a file that is renamed must not drop out of one silently. */
import { existsSync } from 'node:fs';

/**
 * The patterns as they are: `FOLDER/{a,b}.test.ts`, `FOLDER/!(a|b).test.ts`, names and `*`.
 * @throws if a file that one of them names is not there
 */
export function existing(root: string, patterns: readonly string[]): string[] {
  for (const pattern of patterns) {
    const [, before, names, after] = /^(.*?)(?:\{|!\()(.*?)[})](.*)$/.exec(pattern) ?? [];
    const files = names === undefined ? [pattern] : names.split(/[,|]/).map((name) => `${before}${name}${after}`);
    for (const file of files) {
      // A folder at least.
      const path = file.replace(/\/[^/]*\*.*$/, '');
      if (!existsSync(`${root}/${path}`)) throw new Error(`a list of test files names ${file}, which is not there`);
    }
  }
  return [...patterns];
}
