#!/usr/bin/env node
/** The `onesided` command. */
import { RmaError } from '../errors.ts';
import { nearest } from '../options.ts';
import { VERSION } from '../version.ts';
import { agent } from './agent-command.ts';
import { build } from './build-command.ts';
import { type Command, HelpRequest, UsageError } from './command.ts';
import { info } from './info-command.ts';
import { perf } from './perf-command.ts';
import { run } from './run-command.ts';
import { service } from './service-command.ts';
import { trace } from './trace-command.ts';

const SHOWN: Readonly<Record<string, Command>> = { run, trace, info, service, perf, build };
const COMMANDS: Readonly<Record<string, Command>> = { ...SHOWN, agent };

const OVERVIEW = `Usage: onesided <command> [options]

${Object.entries(SHOWN)
  .map(([name, { summary }]) => `  ${name.padEnd(8)}${summary}`)
  .join('\n')}

  onesided <command> --help    options of a command
  onesided --version           version of this package`;

async function main(args: string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined) throw new UsageError('no command given');
  if (name === '--help' || name === '-h') return print(OVERVIEW);
  if (name === '--version' || name === '-v') return print(VERSION);
  if (!Object.hasOwn(COMMANDS, name)) {
    if (name.startsWith('-')) throw new UsageError(`Unknown option '${name}'`);
    const meant = nearest(name, Object.keys(SHOWN));
    const hint = meant === undefined ? '' : `; did you mean '${meant}'?`;
    throw new UsageError(`'${name}' is not a command of onesided${hint}`);
  }
  const command = COMMANDS[name];
  try {
    return await command.run(rest);
  } catch (error) {
    if (error instanceof HelpRequest) return print(command.usage);
    throw error;
  }
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

const args = process.argv.slice(2);
try {
  // Not process.exit: output that is still under way to a pipe would be lost.
  process.exitCode = await main(args);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  const usage = error instanceof UsageError || code === 'ERR_ARG';
  if (!usage && !(error instanceof RmaError)) throw error;
  const command = args[0] !== undefined && Object.hasOwn(COMMANDS, args[0]) ? `onesided ${args[0]}` : 'onesided';
  // Calls that are named say so themselves.
  const what = message.startsWith('onesided ') ? message : `${command}: ${message}`;
  process.stderr.write(`${what}\n${usage ? `Try "${command} --help".\n` : ''}`);
  process.exitCode = usage ? 2 : 1;
}
