"""What a machine needs beside Python packages: a Java, pinned jars, archives of classes, and where they are kept."""
