/** Known bugs in the engine. Where a death or a pause at the wrong moment is needed to see one, the simulation deals it out. */
import { type Mutant, type NamedTest, simulation, story } from './mutant.ts'

const folder = 'packages/latchkey/src/engine'
const phased = (test: string): NamedTest => ({ path: 'packages/latchkey/test/phased/sqlite.test.ts', test })
const effects = (test: string): NamedTest => ({ path: 'packages/latchkey/test/phased/effects.test.ts', test })
const recovering = (test: string): NamedTest => ({ path: 'packages/latchkey/test/engine/recovery.test.ts', test })

const openIntent = '    await openIntent(run, { ...effect, doubtful })\n'
const committedFirst = 'has committed the intent of a call before it makes it'
const recordPhase = 'const written = await edges.last(() => phases.recordPhase(tx, claim, done, leaseMs))'

export const engineMutants: readonly Mutant[] = [
  {
    name: 'engine: no intent',
    patches: [{ file: `${folder}/steps/effect.ts`, find: openIntent, replace: '' }],
    caughtBy: [phased(committedFirst), simulation, story('SQLite')],
  },
  {
    name: 'engine: intent only after the call',
    patches: [
      { file: `${folder}/steps/effect.ts`, find: openIntent, replace: '' },
      {
        file: `${folder}/steps/effect.ts`,
        find: `    faultPoint('effect:after-call')\n`,
        replace: `    faultPoint('effect:after-call')\n${openIntent}`,
      },
    ],
    caughtBy: [phased(committedFirst), simulation, story('SQLite')],
  },
  {
    name: 'engine: dedup window ignored on resume',
    patches: [
      {
        file: `${folder}/steps/effect.ts`,
        find: `if (known?.state === 'open' && !known.repeatable) {`,
        replace: `if (known?.state === 'open' && known.epoch < 0) {`,
      },
    ],
    caughtBy: [phased('repeats no call past its window, also when a person lets the row go on')],
  },
  {
    name: 'engine: a refusal after a doubt taken for proof',
    patches: [
      {
        file: `${folder}/steps/effect.ts`,
        find: `called.kind === 'never-left' && !doubtful`,
        replace: `called.kind === 'never-left'`,
      },
    ],
    caughtBy: [phased('takes no refusal for proof after a try without an answer'), story('SQLite')],
  },
  {
    name: 'engine: answer before store',
    patches: [
      {
        file: `${folder}/run/finish.ts`,
        find: 'asked = finishRow(this.core, this.owned, this.end.judgement)',
        replace: `asked = Promise.resolve('written' as OwnerResult)
      void finishRow(this.core, this.owned, this.end.judgement).catch(() => undefined)`,
      },
    ],
    caughtBy: [recovering('gets the winner’s outcome, never its own success'), simulation],
  },
  {
    name: 'engine: takeover of a hold row',
    patches: [
      {
        file: `${folder}/kinds/guarded.ts`,
        find: `onFailure === 'rerun' ? 'rerun' : 'hold'`,
        replace: `onFailure === 'rerun' ? 'rerun' : 'rerun'`,
      },
    ],
    caughtBy: [recovering('writes at the grant what a death under hold means: hold'), simulation, story('SQLite')],
  },
  {
    name: 'engine: phase result remembered after its transaction',
    patches: [
      { file: `${folder}/steps/phase.ts`, find: recordPhase, replace: `const written = 'written' as string` },
      {
        file: `${folder}/steps/phase.ts`,
        find: `    faultPoint('phase:after-commit')\n`,
        replace: [
          `    faultPoint('phase:after-commit')`,
          `    if (end.kind === 'committed') await rememberLate(run, parts, { position, name, value: inside.result })`,
          '',
        ].join('\n'),
      },
      {
        file: `${folder}/steps/phase.ts`,
        find: 'interface Inside {',
        replace: [
          'function rememberLate<Tx>(run: StepRun<Tx>, { transactor, phases }: PhaseParts<Tx>, done: PhaseDone) {',
          '  return boundedTransaction(run.core, transactor, async (tx, edges) => {',
          '    await edges.first(() => phases.enterPhase(tx, run.claim))',
          '    await edges.last(() => phases.recordPhase(tx, run.claim, done, run.leaseMs))',
          `    return 'commit'`,
          '  })',
          '}',
          '',
          'interface Inside {',
        ].join('\n'),
      },
    ],
    caughtBy: [simulation],
  },
  {
    name: 'engine: a phase that is not declared fails its run, which is tried again for ever',
    patches: [
      {
        file: `${folder}/steps/phase.ts`,
        find: "return halt(run, { kind: 'park', cause: `${called}-not-declared` })",
        replace: 'throw new Error(message)',
      },
    ],
    caughtBy: [effects('parks a row whose definition calls phase all the same')],
  },
  {
    name: 'engine: older versions lose their phases to a newer one of effects only',
    patches: [
      {
        file: `${folder}/steps/run-definition.ts`,
        find: '{ parts: declared.phases, references }',
        replace: '{ parts: [...plan.definitions.values()].at(-1)?.phases, references }',
      },
    ],
    caughtBy: [effects('resumes a row of a version with phases by that version')],
  },
  {
    name: 'engine: a caller that waits has its handler called twice',
    patches: [{ file: `${folder}/execution.ts`, find: '  onStart?.()\n', replace: '' }],
    caughtBy: [recovering('does not wait for the winner to fail')],
  },
  {
    name: 'engine: requests do not wait for the store check',
    patches: [
      {
        file: 'packages/latchkey/src/engine/run/admit.ts',
        find: 'const isPlain = core.checks.passed',
        replace: "const isPlain = core.store.name !== ''",
      },
    ],
    caughtBy: [
      {
        path: 'packages/latchkey/test/engine/set-up/store-check.test.ts',
        test: 'refuses every request while the store is unfit',
      },
    ],
  },
]
