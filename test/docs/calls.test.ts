/** The docstrings of windows, epochs and requests: what every call costs, and how it fails. */
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const INDEX = fileURLToPath(new URL('../../dist/index.d.ts', import.meta.url));
const program = ts.createProgram([INDEX], { skipLibCheck: true, noLib: true });
const checker = program.getTypeChecker();

interface Call {
  readonly name: string;
  readonly doc: string;
  /** It takes options of a wait. */
  readonly waits: boolean;
}

/** The public methods of an exported class, its own, those that it inherits, and those that it has from a window. */
function callsOf(name: string): Call[] {
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(INDEX)!)!);
  const found = exported.find((symbol) => symbol.name === name)!;
  const symbol = found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
  const members = checker.getDeclaredTypeOfSymbol(symbol).getProperties();
  return members
    .filter(({ declarations, name }) => ts.isMethodDeclaration(declarations![0]) && !name.startsWith('__'))
    .filter(({ declarations }) => !(ts.getCombinedModifierFlags(declarations![0]) & ts.ModifierFlags.Protected))
    .map((member) => ({
      name: member.name,
      doc: ts.displayPartsToString(member.getDocumentationComment(checker)),
      waits: (member.declarations![0] as ts.MethodDeclaration).parameters.some(
        ({ type }) => type?.getText() === 'WaitOptions',
      ),
    }));
}

/** Another call, whose docstring says it: `otherwise like`, `see`, `as`. */
const ELSEWHERE = /(like|see|as)\s(`|the window's)/i;

describe.each(['Window', 'LockEpoch', 'LockAllEpoch', 'FenceEpoch', 'StartEpoch', 'PostEpoch', 'Request', 'Aggregate'])(
  'each call of a %s says',
  (name) => {
    test('how it fails', () => {
      const calls = callsOf(name);
      expect(calls.length).toBeGreaterThan(2);
      const silent = calls.filter(({ doc }) => !/errors:/i.test(doc) && !ELSEWHERE.test(doc));
      expect(silent.map((call) => call.name)).toEqual([]);
    });

    test('what it costs, if it waits', () => {
      const silent = callsOf(name).filter(({ doc, waits }) => waits && !/cost/i.test(doc) && !ELSEWHERE.test(doc));
      expect(silent.map((call) => call.name)).toEqual([]);
    });
  },
);
