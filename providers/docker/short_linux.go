package docker

import "golang.org/x/sys/unix"

// readShort reads a setting of the kernel with as few calls as can be: a plan of many networks reads
// thousands.
func readShort(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var raw [64]byte
	for {
		n, err := unix.Read(fd, raw[:])
		if err != unix.EINTR {
			return string(raw[:max(0, n)]), err
		}
	}
}
