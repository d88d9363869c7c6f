/**
 * `npm start`: builds what is missing and runs RandomAccess.
 *
 *     npm start -- [--ranks 2] [--words 2^24] [--variant aggregated] [--json FILE] [--quiet]
 *
 * Ranks are processes, or worker threads where the addon is not available. The exit code is not 0 if verification
 * fails.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { orExplain } from '../scripts/explain.mjs';
import { launch } from './launch.mjs';

const { values } = orExplain(() =>
  parseArgs({
    options: {
      ranks: { type: 'string', default: '2' },
      words: { type: 'string', default: '2^24' },
      variant: { type: 'string', default: 'aggregated' },
      json: { type: 'string' },
      quiet: { type: 'boolean', default: false },
    },
  }),
);
launch('hpcc/random-access', {
  ranks: values.ranks,
  args: [
    ...['--words', values.words, '--variant', values.variant],
    ...(values.json === undefined ? [] : ['--json', resolve(values.json)]),
    ...(values.quiet ? ['--quiet'] : []),
  ],
});
