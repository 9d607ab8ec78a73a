import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A JVM beside this one, with the same library under it. */
final class Child implements AutoCloseable {
    private final Process process;
    private final List<String> lines = new ArrayList<>();

    Child(String classPath, Path log, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-XX:+UseSerialGC", "-Xmx1g"));
        for (String property : new String[] {"java.library.path", "library", "java.io.tmpdir"}) {
            if (System.getProperty(property) != null) {
                command.add("-D" + property + "=" + System.getProperty(property));
            }
        }
        command.addAll(List.of("-cp", classPath));
        command.addAll(arguments);
        process = new ProcessBuilder(command)
            .redirectError(ProcessBuilder.Redirect.appendTo(Files.createDirectories(log.getParent()).resolve(log.getFileName()).toFile()))
            .start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        Thread reader = new Thread(this::read);
        reader.setDaemon(true);
        reader.start();
    }

    private void read() {
        try (BufferedReader reader = process.inputReader()) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                synchronized (lines) {
                    lines.add(line);
                    lines.notifyAll();
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The first line that starts so; fails if the process ends before it, or after some time. */
    String await(String start, int seconds) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        synchronized (lines) {
            while (true) {
                for (String line : lines) {
                    if (line.startsWith(start)) {
                        return line;
                    }
                }
                if (System.nanoTime() > until || !process.isAlive()) {
                    throw new IllegalStateException("no line \"" + start + "\" of a process that "
                        + (process.isAlive() ? "runs" : "ended with " + process.exitValue()) + ": " + lines);
                }
                lines.wait(100);
            }
        }
    }

    /** SIGKILL. */
    void kill() throws InterruptedException {
        process.destroyForcibly().waitFor();
    }

    int ended(int seconds) throws InterruptedException {
        return process.waitFor(seconds, TimeUnit.SECONDS) ? process.exitValue() : -1;
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
        }
    }
}
