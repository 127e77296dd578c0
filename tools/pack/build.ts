// Compiles a package into a folder outside the working tree, where no other run is disturbed.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, toolPath } from '../check/process.ts'

/** `declarations`: where the packages before this one are built, for one that compiles against them. */
export type Build = { root: string; folder: string; out: string; declarations: string | undefined }

/** Comments stay in the declarations, which editors show. In the code they would be a sixth of the package. */
export async function build({ root, folder, out, declarations }: Build): Promise<void> {
  const project = join(out, 'tsconfig.json')
  mkdirSync(out, { recursive: true })
  writeFileSync(project, JSON.stringify(projectOf({ root, folder, out, declarations })))
  await must('tsc', ['-p', project, '--pretty', 'false', '--emitDeclarationOnly'], root)
  const codeOnly = ['--removeComments', '--declaration', 'false', '--isolatedDeclarations', 'false']
  await must('tsc', ['-p', project, '--pretty', 'false', ...codeOnly], root)
}

function projectOf({ root, folder, out, declarations }: Build): object {
  const library = `${declarations}/packages/latchkey/dist`
  const paths = {
    latchkey: [`${library}/index.d.ts`],
    'latchkey/*': [`${library}/*/index.d.ts`],
    '@latchkey/console': [`${declarations}/packages/console/dist/index.d.ts`],
  }
  const source = join(root, folder, 'src')
  return {
    extends: join(root, folder, 'tsconfig.build.json'),
    compilerOptions: {
      rootDir: source,
      outDir: join(out, 'dist'),
      typeRoots: [join(root, 'node_modules/@types')],
      ...(declarations === undefined ? {} : { paths }),
    },
    include: [source],
    exclude: [join(source, '**/*.test.ts'), join(source, '**/vectors')],
  }
}

/** Fails with what the program said. */
export async function must(tool: 'tsc' | 'npm', args: readonly string[], cwd: string): Promise<string> {
  const { code, output } = await run(tool === 'npm' ? 'npm' : toolPath(tool), args, cwd)
  if (code !== 0) throw new Error(`${tool} ${args.join(' ')} ended with ${code} in ${cwd}:\n${output}`)
  return output
}
