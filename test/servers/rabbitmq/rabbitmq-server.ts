import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findProgram } from '../brokers/find-program.ts'
import { HOST, launch, onFreePort, speaks } from '../brokers/launch.ts'
import { freePort } from '../free-port.ts'
import { makeDirectory } from '../postgres-directory.ts'
import { ownsPort, processesInside, signal, until } from '../processes.ts'

export type RabbitmqServer = {
  readonly url: string
  readonly port: number
  /** Of the virtual machine, which is a child of the script that was started. */
  readonly pid: number
  stop(): Promise<void>
}

export type FoundRabbitmq = { kind: 'found'; server: string; epmd: string } | { kind: 'missing'; why: string }

/** Above a cold start of ten seconds on a machine that has other things to do. */
const READY_LIMIT_MS = 120_000
const EPMD_LIMIT_MS = 10_000
const END_LIMIT_MS = 10_000

/** Its own script. The one on Debian's PATH changes to another user first. */
const DEBIAN_SCRIPTS = '/usr/lib/rabbitmq/bin'

/** A little less than the most that the outbox holds, so that a message can be too large. */
const MESSAGE_BYTES_MAX = 60_000

export function findRabbitmq(): FoundRabbitmq {
  const server = findProgram('rabbitmq-server', [DEBIAN_SCRIPTS])
  const epmd = findProgram('epmd')
  if (server.kind === 'missing') return server
  if (epmd.kind === 'missing') return epmd
  return { kind: 'found', server: server.path, epmd: epmd.path }
}

/** Starts a private RabbitMQ on ports the kernel chooses. It ends with this process, even if that is killed. */
export async function startRabbitmq(): Promise<RabbitmqServer> {
  const found = findRabbitmq()
  if (found.kind === 'missing') throw new Error(`cannot start RabbitMQ: ${found.why}`)
  const directory = makeDirectory({})
  const stop = async () => {
    await endAllIn(directory.path)
    directory.remove()
  }
  try {
    const epmd = await onFreePort('epmd', port => startEpmd(found.epmd, { directory: directory.path, port }))
    const { port, pid } = await onFreePort('RabbitMQ', port =>
      startNode(found.server, { directory: directory.path, port, epmdPort: epmd.port }),
    )
    return { url: `amqp://guest:guest@${HOST}:${port}`, port, pid, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

type Place = { readonly directory: string; readonly port: number }

/** Erlang's register of names, started first: a node that finds none starts one that outlives it. */
async function startEpmd(command: string, { directory, port }: Place): Promise<{ port: number } | 'port-taken'> {
  const own = join(directory, 'epmd')
  mkdirSync(own, { recursive: true })
  const launched = await launch({
    name: 'epmd',
    command,
    args: ['-port', String(port), '-address', HOST],
    directory: own,
    readyWithinMs: EPMD_LIMIT_MS,
    isReady: ({ pid }) => ownsPort(pid, port) !== 'no',
  })
  return launched === 'port-taken' ? launched : { port }
}

async function startNode(
  command: string,
  { directory, port, epmdPort }: Place & { readonly epmdPort: number },
): Promise<{ port: number; pid: number } | 'port-taken'> {
  const own = join(directory, `node-${port}`)
  for (const folder of ['home', 'mnesia', 'log']) mkdirSync(join(own, folder), { recursive: true })
  writeFileSync(join(own, 'plugins'), '[].\n')
  writeFileSync(join(own, 'none'), '')
  writeFileSync(join(own, 'rabbit.conf'), `max_message_size = ${MESSAGE_BYTES_MAX}\n`)
  const env = nodeEnv(own, { port, epmdPort, distributionPort: await freePort() })
  const launched = await launch({
    name: 'RabbitMQ',
    command,
    args: [],
    env: { ...env, PATH: `${dirname(command)}:${process.env['PATH'] ?? ''}` },
    directory: own,
    readyWithinMs: READY_LIMIT_MS,
    isReady: () => isServing(own, port),
  })
  return launched === 'port-taken' ? launched : { port, pid: nodePid(own) }
}

/** Nothing of the machine's own RabbitMQ is read or written. */
function nodeEnv(
  own: string,
  { port, epmdPort, distributionPort }: { port: number; epmdPort: number; distributionPort: number },
): NodeJS.ProcessEnv {
  return {
    LC_ALL: 'C.UTF-8',
    HOME: join(own, 'home'),
    RABBITMQ_NODENAME: `latchkey-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: HOST,
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distributionPort),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: HOST,
    RABBITMQ_MNESIA_BASE: join(own, 'mnesia'),
    RABBITMQ_LOG_BASE: join(own, 'log'),
    RABBITMQ_PID_FILE: join(own, 'pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(own, 'plugins'),
    RABBITMQ_CONFIG_FILE: join(own, 'rabbit'),
    RABBITMQ_CONF_ENV_FILE: join(own, 'none'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
}

/** It listens when everything else of it has started. */
async function isServing(own: string, port: number): Promise<boolean> {
  const pid = nodePid(own)
  if (pid === 0 || ownsPort(pid, port) === 'no') return false
  return speaks(port, first => first[0] === 1, Buffer.from('AMQP\0\0\x09\x01', 'latin1'))
}

/** 0: it has not written it yet. */
function nodePid(own: string): number {
  try {
    return Number.parseInt(readFileSync(join(own, 'pid'), 'utf8'), 10) || 0
  } catch {
    return 0
  }
}

/** The script, the virtual machine, its helpers and epmd: all of them run in the directory. */
async function endAllIn(directory: string): Promise<void> {
  const isEmpty = () => {
    const left = processesInside(directory)
    for (const pid of left) signal(pid, 'SIGKILL')
    return left.length === 0
  }
  if (!(await until(isEmpty, END_LIMIT_MS))) throw new Error(`processes survive SIGKILL in ${directory}`)
}
