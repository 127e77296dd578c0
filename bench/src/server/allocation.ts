/** How much the process allocates on the JavaScript heap, memory that was collected meanwhile included. */
import { GCProfiler, getHeapStatistics } from 'node:v8'

/** Starts to count. The returned function stops it and returns the bytes. */
export function countAllocations(): () => number {
  const profiler = new GCProfiler()
  profiler.start()
  const atStart = usedBytes()
  return () => {
    const atEnd = usedBytes()
    let [allocated, from] = [0, atStart]
    // Between two collections the heap only grows.
    for (const { beforeGC, afterGC } of profiler.stop()?.statistics ?? []) {
      allocated += beforeGC.heapStatistics.usedHeapSize - from
      from = afterGC.heapStatistics.usedHeapSize
    }
    return allocated + atEnd - from
  }
}

function usedBytes(): number {
  return getHeapStatistics().used_heap_size
}
