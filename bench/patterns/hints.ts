/**
 * The options of programs that are hints of their windows. Whether there is such a scheme, or such a value, the window
 * knows.
 */
import type { WindowInfo } from 'onesided';

/** With `lock`: what else there is to say of locks. */
const OF_LOCKS = {
  'lock-mode': { type: 'string' },
  'lock-migration': { type: 'string' },
  'lock-defer': { type: 'boolean' },
} as const;

/** The hints that a program can say that it takes. */
export type HintName = 'lock' | 'fence' | 'update' | 'noncontiguous';

/**
 * For `parseArgs`: `--lock SCHEME [--lock-mode cpu|network] [--lock-migration POLICY] [--lock-defer]`,
 * `--fence SCHEME`, `--update SCHEME`, `--noncontiguous SCHEME`.
 */
export function hintOptions(
  hints: readonly HintName[],
): Readonly<Record<string, { readonly type: 'string' | 'boolean' }>> {
  return {
    ...Object.fromEntries(hints.map((hint) => [hint, { type: 'string' as const }])),
    ...(hints.includes('lock') ? OF_LOCKS : {}),
  };
}

/** @param given what `parseArgs` has found */
export function readHints(given: Readonly<Record<string, string | boolean | undefined>>): WindowInfo {
  const names = ['lock', 'fence', 'update', 'noncontiguous', ...Object.keys(OF_LOCKS)].filter(
    (name) => given[name] !== undefined,
  );
  return Object.fromEntries(names.map((name) => [name.replace('-', '_'), given[name]]));
}

/** The options that say the same. */
export function hintArguments(info: WindowInfo): string[] {
  return Object.entries(info).flatMap(([hint, value]) => {
    const option = `--${hint.replace('_', '-')}`;
    return value === false ? [] : value === true ? [option] : [option, `${value}`];
  });
}
